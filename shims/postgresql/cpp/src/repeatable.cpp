#include "repeatable.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "tokens.h"

namespace antipode::postgresql {
namespace {

// All lists are sorted.
constexpr std::string_view kNever[] = {
    "current_catalog", "current_date", "current_role", "current_schema", "current_time",  "current_timestamp",
    "current_user",    "delete",       "for",          "insert",         "into",          "localtime",
    "localtimestamp",  "lock",         "merge",        "next",           "nextval",       "procedure",
    "session_user",    "system_user",  "tablesample",  "update",         "user",          "utc_date",
    "utc_time",        "utc_timestamp"};
// Which rows they leave is the server's choice, but in an order.
constexpr std::string_view kOrdered[] = {"fetch", "limit", "offset"};
// The words `word-…` of spec/vectors/repeatable-statements.json.
constexpr std::string_view kBeforeParenthesis[] = {
    "abs",        "all",          "and",          "any",         "array",
    "as",         "asc",          "avg",          "between",     "bigint",
    "bit_and",    "bit_length",   "bit_or",       "bool_and",    "bool_or",
    "boolean",    "btrim",        "by",           "case",        "cast",
    "ceil",       "ceiling",      "char",         "char_length", "character_length",
    "coalesce",   "concat",       "concat_ws",    "count",       "cume_dist",
    "date_trunc", "decimal",      "dense_rank",   "desc",        "distinct",
    "else",       "every",        "except",       "exists",      "extract",
    "filter",     "first_value",  "floor",        "from",        "greatest",
    "group",      "having",       "in",           "initcap",     "inner",
    "intersect",  "interval",     "is",           "join",        "jsonb_array_length",
    "lag",        "last_value",   "lateral",      "lead",        "least",
    "left",       "length",       "like",         "ln",          "lower",
    "lpad",       "ltrim",        "max",          "md5",         "min",
    "mod",        "not",          "nth_value",    "ntile",       "nullif",
    "numeric",    "octet_length", "on",           "or",          "order",
    "over",       "partition",    "percent_rank", "position",    "power",
    "rank",       "repeat",       "replace",      "reverse",     "right",
    "round",      "row",          "row_number",   "rpad",        "rtrim",
    "select",     "sign",         "some",         "split_part",  "sqrt",
    "substr",     "substring",    "sum",          "then",        "to_char",
    "trim",       "trunc",        "union",        "upper",       "using",
    "values",     "varchar",      "when",         "where",       "width_bucket",
    "with",       "within"};
constexpr std::string_view kSessions[] = {"pg_temp", "set_config", "temp", "temporary"};
constexpr std::string_view kPartsOfSessions[] = {"set", "temp"};  // each of these, and SET, has one of them

template <std::size_t n>
bool IsOneOf(const std::string_view (&words)[n], const Token& token) {
  return token.type == Token::Type::kWord && std::binary_search(std::begin(words), std::end(words), token.text);
}

// Whether it may be called, or is no call: the word before this parenthesis.
bool MayStandBefore(const std::vector<Token>& tokens, std::size_t parenthesis) {
  if (parenthesis == 0) return true;
  const Token& word = tokens[parenthesis - 1];
  if (!word.IsName()) return true;
  return IsOneOf(kBeforeParenthesis, word) && (parenthesis < 2 || !tokens[parenthesis - 2].IsOther("."));
}

bool IsOneRead(std::vector<Token> tokens) {
  while (!tokens.empty() && tokens.back().IsOther(";")) tokens.pop_back();
  if (tokens.empty()) return false;
  const Token& first = tokens.front();
  if (!first.IsWord("select") && !first.IsWord("with") && !first.IsWord("table")) return false;
  const bool ordered =
      std::any_of(tokens.begin(), tokens.end(), [](const Token& each) { return each.IsWord("order"); });
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    const Token& token = tokens[place];
    if (token.IsOther(";") || token.IsOther("@") || IsOneOf(kNever, token)) return false;
    if (token.IsOther("=") && place > 0 && tokens[place - 1].IsOther(":")) return false;
    if (token.type == Token::Type::kWord && token.text.compare(0, 3, "pg_") == 0) return false;
    if (IsOneOf(kOrdered, token) && !ordered) return false;
    if (token.IsOther("(") && !MayStandBefore(tokens, place)) return false;
  }
  return true;
}

// Behind SET: of this transaction, or of those to come, how they run, which changes no statement's meaning.
bool IsOfTransactions(const std::vector<Token>& tokens, std::size_t place) {
  const auto is = [&](std::size_t at, std::string_view word) { return at < tokens.size() && tokens[at].IsWord(word); };
  return is(place, "transaction") || is(place, "constraints") ||
         (is(place, "session") && is(place + 1, "characteristics"));
}

// Whether one of the words that `Changes` looks for may be in it: this is asked of each statement that is no plain read
// or write.
bool MayName(std::string_view text) {
  const auto alike = [](char letter, char small) { return (letter | 0x20) == small; };
  return std::any_of(std::begin(kPartsOfSessions), std::end(kPartsOfSessions), [&](std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(), alike) != text.end();
  });
}

bool Changes(const std::vector<Token>& tokens) {
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    const bool begins = place == 0 || tokens[place - 1].IsOther(";");
    if (begins && tokens[place].IsWord("set") && !IsOfTransactions(tokens, place + 1)) return true;
    if (IsOneOf(kSessions, tokens[place])) return true;
  }
  return false;
}

}  // namespace

bool IsRepeatable(std::string_view text) {
  Tokens tokens = Divide(text, false);
  if (!tokens.sure || tokens.number_runs_on) return false;
  if (text.find('\\') != std::string_view::npos) {  // it may depend on a setting what is a literal
    const Tokens escaped = Divide(text, true);
    if (!escaped.sure || escaped.number_runs_on || escaped.all != tokens.all) return false;
  }
  return IsOneRead(std::move(tokens.all));
}

bool ChangesSession(std::string_view text) {
  if (!MayName(text)) return false;
  return Changes(Divide(text, false).all) ||
         (text.find('\\') != std::string_view::npos && Changes(Divide(text, true).all));
}

}  // namespace antipode::postgresql
