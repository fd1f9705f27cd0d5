#include "statements.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tokens.h"

namespace antipode::postgresql {
namespace {

template <std::size_t n>
bool IsOneOf(const std::string_view (&words)[n], std::string_view word) {
  return std::binary_search(std::begin(words), std::end(words), word);
}

// All lists are sorted.
constexpr std::string_view kChanges[] = {"delete", "insert", "merge", "update"};
constexpr std::string_view kReads[] = {
    "begin", "checkpoint", "close",   "deallocate", "declare", "fetch", "listen", "lock",     "move",
    "notify", "prepare",   "release", "savepoint",  "show",    "start", "table",  "unlisten", "values"};
constexpr std::string_view kSets[] = {"discard", "reset", "set"};
constexpr std::string_view kQueries[] = {"declare", "explain", "select", "table", "values", "with"};
// What stands before a parenthesis in a plain query, and changes nothing.
constexpr std::string_view kHarmless[] = {
    "abs",           "age",          "all",           "and",
    "any",           "array",        "array_agg",     "as",
    "avg",           "bit",          "bool_and",      "bool_or",
    "by",            "case",         "cast",          "ceil",
    "ceiling",       "char",         "clock_timestamp", "coalesce",
    "concat",        "concat_ws",    "copy",          "count",
    "cross",         "current_database", "current_schema", "current_setting",
    "current_timestamp", "date_part", "date_trunc",   "decimal",
    "decode",        "dense_rank",   "distinct",      "else",
    "encode",        "except",       "exists",        "extract",
    "filter",        "floor",        "format",        "from",
    "full",          "generate_series", "greatest",   "group",
    "having",        "in",           "inner",         "intersect",
    "interval",      "join",         "json_agg",      "json_build_object",
    "jsonb_agg",     "jsonb_array_elements", "jsonb_build_object", "lag",
    "lateral",       "lead",         "least",         "left",
    "length",        "limit",        "lower",         "max",
    "md5",           "min",          "mod",           "not",
    "now",           "nullif",       "numeric",       "offset",
    "on",            "or",           "outer",         "over",
    "pg_backend_pid", "pg_is_in_recovery", "pg_sleep", "pg_typeof",
    "position",      "quote_ident",  "quote_literal", "random",
    "rank",          "regexp_matches", "regexp_replace", "replace",
    "right",         "round",        "row_number",    "row_to_json",
    "select",        "some",         "split_part",    "string_agg",
    "strpos",        "substr",       "substring",     "sum",
    "then",          "time",         "timestamp",     "to_char",
    "to_date",       "to_json",      "to_jsonb",      "to_regclass",
    "to_timestamp",  "trim",         "union",         "unnest",
    "upper",         "using",        "values",        "varchar",
    "version",       "when",         "where",         "with",
    "within"};

class Statements {
 public:
  explicit Statements(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    while (!tokens_.empty() && tokens_.back().IsOther(";")) tokens_.pop_back();
  }

  Kind Kinds() const {
    if (tokens_.empty()) return Kind::kRead;
    std::size_t first = 0;
    while (first < tokens_.size() && tokens_[first].IsOther("(")) ++first;
    if (first == tokens_.size() || tokens_[first].type != Token::Type::kWord) return Kind::kMaybe;
    if (std::any_of(tokens_.begin(), tokens_.end(), [](const Token& each) { return each.IsOther(";"); })) {
      return Kind::kMayCommit;
    }
    const std::string& word = tokens_[first].text;
    if (word == "commit" || word == "end" || word == "rollback" || word == "abort") return Ending(word);
    if (IsOneOf(kChanges, word)) return Kind::kWrite;
    if (word == "prepare" && Has("transaction") && tokens_[1].text == "transaction") return Kind::kPrepare;
    if (word == "copy") return CopiesOut() ? Query(word) : Kind::kMaybe;
    if (IsOneOf(kQueries, word)) return Query(word);
    if (IsOneOf(kSets, word)) return Kind::kSession;
    return IsOneOf(kReads, word) ? Kind::kRead : Kind::kMaybe;
  }

 private:
  bool Has(std::string_view word) const {
    return std::any_of(tokens_.begin(), tokens_.end(), [word](const Token& each) { return each.IsWord(word); });
  }

  Kind Ending(const std::string& word) const {
    const bool commits = word == "commit" || word == "end";
    if (tokens_.size() > 1 && tokens_[1].text == "prepared") {
      return commits ? Kind::kCommitPrepared : Kind::kRollbackPrepared;
    }
    if (Has("chain") && !Has("no")) return commits ? Kind::kMayCommit : Kind::kMaybe;
    if (commits) return Kind::kCommit;
    return Has("to") ? Kind::kSession : Kind::kRollback;  // ROLLBACK TO a savepoint
  }

  // COPY … TO, of which the part in parentheses is a query.
  bool CopiesOut() const {
    int depth = 0;
    for (const Token& each : tokens_) {
      depth += each.IsOther("(") ? 1 : each.IsOther(")") ? -1 : 0;
      if (depth != 0 || each.type != Token::Type::kWord) continue;
      if (each.text == "from") return false;
      if (each.text == "to") return !Has("program");
    }
    return false;
  }

  Kind Query(const std::string& first) const {
    for (const std::string_view change : kChanges) {
      if (first != "select" && Has(change)) return first == "with" ? Kind::kWrite : Kind::kMaybe;
    }
    if (Has("into") || Has("execute") || Has("analyze") || Has("analyse")) return Kind::kMaybe;
    for (std::size_t place = 1; place < tokens_.size(); ++place) {
      if (!tokens_[place].IsOther("(")) continue;
      const Token& called = tokens_[place - 1];
      if (called.type == Token::Type::kQuoted) return Kind::kMaybe;
      if (called.type != Token::Type::kWord) continue;
      const bool qualified = place > 1 && tokens_[place - 2].IsOther(".");
      const bool own = !qualified || (place > 2 && tokens_[place - 3].text == "pg_catalog");
      if (!own || !IsOneOf(kHarmless, called.text)) return Kind::kMaybe;
    }
    return Kind::kRead;
  }

  std::vector<Token> tokens_;
};

Kind ClassifyWith(std::string_view text, bool escapes) {
  Tokens tokens = Divide(text, escapes);
  if (!tokens.sure) return Kind::kMayCommit;
  const Kind kind = Statements(std::move(tokens.all)).Kinds();
  return kind == Kind::kRead && tokens.spelled ? Kind::kMaybe : kind;
}

// Whether an octet may be half of a character where it would matter: in a client's encoding such as SJIS, BIG5, GBK or
// GB18030 the second one may look like a backslash, or like a sign before a parenthesis, which is then a call.
bool MayHoldPairs(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at - 1]) < 0x80) continue;
    if (text[at] == '\\') return true;
    if (std::string_view("@[]^`{|}~").find(text[at]) == std::string_view::npos) continue;
    const std::size_t next = text.find_first_not_of(" \t\n\r\f\v", at + 1);
    if (next == std::string_view::npos) continue;
    const std::string_view follows = text.substr(next, 2);  // a comment is a space, too
    if (follows.front() == '(' || follows == "/*" || follows == "--") return true;
  }
  return false;
}

// For a recorded history. What gives no data of the tables that it names, or what the query of its cursor has said.
constexpr std::string_view kShowsNone[] = {"alter",   "analyze", "close",    "cluster", "comment", "create",
                                           "delete",  "drop",    "fetch",    "grant",   "import",  "insert",
                                           "lock",    "merge",   "move",     "prepare", "reassign", "refresh",
                                           "reindex", "revoke",  "security", "truncate", "update", "vacuum"};
constexpr std::string_view kMayShow[] = {"call", "copy",   "do",    "execute", "explain",
                                         "from", "select", "table", "values",  "with"};

bool IsData(const Token& token) { return token.IsWord("from") || token.IsWord("table") || token.IsWord("copy"); }

bool MayShow(const Token& token) { return token.type == Token::Type::kWord && IsOneOf(kMayShow, token.text); }

// Whether one statement of several may show data.
bool Shows(const std::vector<Token>& statement, bool (*names)(const Token&)) {
  if (std::none_of(statement.begin(), statement.end(), names)) return false;
  const auto first =
      std::find_if(statement.begin(), statement.end(), [](const Token& each) { return !each.IsOther("("); });
  if (IsOneOf(kShowsNone, first->text)) return false;
  int depth = 0;
  return !first->IsWord("copy") || std::none_of(statement.begin(), statement.end(), [&depth](const Token& each) {
    depth += each.IsOther("(") ? 1 : each.IsOther(")") ? -1 : 0;
    return depth == 0 && each.IsWord("from");  // it copies in
  });
}

bool ShowsAny(const Tokens& tokens, bool (*names)(const Token&)) {
  if (!tokens.sure) return true;
  std::vector<Token> statement;
  for (const Token& each : tokens.all) {
    if (!each.IsOther(";")) {
      statement.push_back(each);
    } else if (Shows(statement, names)) {
      return true;
    } else {
      statement.clear();
    }
  }
  return Shows(statement, names);
}

}  // namespace

Kind Classify(std::string_view text) {
  if (MayHoldPairs(text)) return Kind::kMayCommit;
  const Kind kind = ClassifyWith(text, false);
  if (text.find('\\') == std::string_view::npos || ClassifyWith(text, true) == kind) return kind;
  return Kind::kMayCommit;  // it depends on a setting
}

bool DeclaresHeld(std::string_view text) {
  const std::vector<Token> tokens = Divide(text, false).all;
  if (tokens.empty() || !tokens.front().IsWord("declare")) return false;
  const auto found = std::adjacent_find(tokens.begin(), tokens.end(), [](const Token& one, const Token& next) {
    return one.IsWord("with") && next.IsWord("hold");
  });
  return found != tokens.end();
}

std::string TransactionIn(Kind kind, std::string_view text) {
  if (kind != Kind::kPrepare && kind != Kind::kCommitPrepared && kind != Kind::kRollbackPrepared) return {};
  std::vector<Token> tokens = Divide(text, false).all;
  while (!tokens.empty() && tokens.back().IsOther(";")) tokens.pop_back();
  const std::size_t first = text.find('\'');
  if (tokens.size() != 3 || tokens.back().type != Token::Type::kLiteral || first == std::string_view::npos) return {};
  constexpr std::string_view kUnclear[] = {"\\", "--", "/*"};
  const bool is_unclear = std::any_of(std::begin(kUnclear), std::end(kUnclear), [text](std::string_view each) {
    return text.find(each) != std::string_view::npos;
  });
  const char before = text[first - 1];  // a letter there says how the literal is to be read
  return is_unclear || (before != ' ' && before != '\n')
             ? std::string()
             : std::string(text.substr(first, text.rfind('\'') + 1 - first));
}

bool MayPrepare(Kind kind, std::string_view text) {
  if (kind != Kind::kMayCommit) return false;
  const Tokens tokens = Divide(text, false);
  const auto found = std::adjacent_find(tokens.all.begin(), tokens.all.end(), [](const Token& one, const Token& next) {
    return one.IsWord("prepare") && next.IsWord("transaction");
  });
  return !tokens.sure || found != tokens.all.end();
}

bool MayRead(Kind kind, std::string_view text) {
  if (kind != Kind::kWrite) return kind == Kind::kRead || IsUnsure(kind);
  const std::vector<Token> tokens = Divide(text, false).all;
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.IsWord("returning") || token.IsWord("select") || token.IsWord("with");
  });
}

bool IsHarmless(std::string_view name) { return IsOneOf(kHarmless, name); }

bool ReadsData(std::string_view text) {
  const std::vector<Token> tokens = Divide(text, false).all;
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) { return token.IsWord("from"); });
}

bool MayRename(std::string_view text) {
  const Kind kind = Classify(text);
  if (IsUnsure(kind)) return true;
  if (kind != Kind::kRead && kind != Kind::kSession) return false;
  const std::vector<Token> tokens = Divide(text, false).all;
  if (tokens.empty()) return false;
  const std::string& first = tokens.front().text;
  return first == "deallocate" || first == "discard" || first == "prepare";
}

bool IsNoted(std::string_view text) {
  const Kind kind = Classify(text);
  if (kind != Kind::kRead && !IsUnsure(kind)) return false;
  bool (*const names)(const Token&) = kind == Kind::kRead ? IsData : MayShow;
  return ShowsAny(Divide(text, false), names) ||
         (text.find('\\') != std::string_view::npos && ShowsAny(Divide(text, true), names));
}

}  // namespace antipode::postgresql
