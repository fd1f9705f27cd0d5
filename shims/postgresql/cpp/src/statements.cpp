#include "statements.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

namespace antipode::postgresql {
namespace {

// One part of a statement that matters here. Comments and the insides of literals do not.
struct Token {
  enum class Type { kWord, kQuoted, kLiteral, kOther };
  Type type = Type::kOther;
  std::string text;  // words in lower case; of others the character itself
};

bool IsLetter(char c) {
  const auto octet = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || octet >= 0x80;
}

bool IsPartOfWord(char c) { return IsLetter(c) || (c >= '0' && c <= '9') || c == '$'; }

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Divides a text as the server does. `escapes`: a backslash escapes in every literal (standard_conforming_strings = off).
// `sure` is false where a literal, a name or a comment does not end.
class Lexer {
 public:
  Lexer(std::string_view text, bool escapes) : text_(text), escapes_(escapes) {}

  std::vector<Token> Run() {
    while (at_ < text_.size() && sure) Next();
    return std::move(tokens_);
  }

  bool sure = true;

 private:
  char Peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Next() {
    const char c = Peek();
    if (IsSpace(c)) {
      ++at_;
    } else if (c == '-' && Peek(1) == '-') {
      while (at_ < text_.size() && Peek() != '\n' && Peek() != '\r') ++at_;
    } else if (c == '/' && Peek(1) == '*') {
      Comment();
    } else if (c == '\'') {
      Literal(escapes_);
    } else if (c == '"') {
      Quoted();
    } else if (c == '$' && (IsLetter(Peek(1)) || Peek(1) == '$')) {
      Dollars();
    } else if (IsLetter(c)) {
      Word();
    } else {
      tokens_.push_back({Token::Type::kOther, std::string(1, c)});
      ++at_;
    }
  }

  void Comment() {
    int depth = 0;
    do {
      if (Peek() == '/' && Peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (Peek() == '*' && Peek(1) == '/') {
        --depth;
        at_ += 2;
      } else {
        ++at_;
      }
    } while (depth > 0 && at_ < text_.size());
    sure = depth == 0;
  }

  void Literal(bool escapes) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\\' && escapes) {
        ++at_;
      } else if (c == '\'') {
        if (Peek() != '\'') {
          tokens_.push_back({Token::Type::kLiteral, {}});
          return;
        }
        ++at_;
      }
    }
    sure = false;
  }

  void Quoted() {
    std::string name;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        if (Peek() != '"') {
          tokens_.push_back({Token::Type::kQuoted, std::move(name)});
          return;
        }
        ++at_;
      }
      name += c;
    }
    sure = false;
  }

  void Dollars() {
    const std::size_t end = text_.find('$', at_ + 1);
    const std::string_view tag = end == std::string_view::npos ? "" : text_.substr(at_, end + 1 - at_);
    const bool plain = !tag.empty() && std::all_of(tag.begin() + 1, tag.end() - 1, IsPartOfWord);
    const std::size_t close = plain ? text_.find(tag, end + 1) : std::string_view::npos;
    if (close == std::string_view::npos) {
      sure = false;
      return;
    }
    at_ = close + tag.size();
    tokens_.push_back({Token::Type::kLiteral, {}});
  }

  void Word() {
    std::string word;
    while (IsPartOfWord(Peek())) word += Lower(text_[at_++]);
    if (Peek() == '\'' && (word == "e" || word == "b" || word == "x" || word == "n")) {
      Literal(escapes_ || word == "e");
    } else {
      tokens_.push_back({Token::Type::kWord, std::move(word)});
    }
  }

  const std::string_view text_;
  const bool escapes_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

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
    while (!tokens_.empty() && IsOther(tokens_.back(), ";")) tokens_.pop_back();
  }

  Kind Kinds() const {
    if (tokens_.empty()) return Kind::kRead;
    std::size_t first = 0;
    while (first < tokens_.size() && IsOther(tokens_[first], "(")) ++first;
    if (first == tokens_.size() || tokens_[first].type != Token::Type::kWord) return Kind::kMaybe;
    if (std::any_of(tokens_.begin(), tokens_.end(), [](const Token& each) { return IsOther(each, ";"); })) {
      return Kind::kMaybe;
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
  static bool IsOther(const Token& token, std::string_view text) {
    return token.type == Token::Type::kOther && token.text == text;
  }

  bool Has(std::string_view word) const {
    return std::any_of(tokens_.begin(), tokens_.end(), [word](const Token& each) {
      return each.type == Token::Type::kWord && each.text == word;
    });
  }

  Kind Ending(const std::string& word) const {
    const bool commits = word == "commit" || word == "end";
    if (tokens_.size() > 1 && tokens_[1].text == "prepared") {
      return commits ? Kind::kCommitPrepared : Kind::kRollbackPrepared;
    }
    if (Has("chain") && !Has("no")) return Kind::kMaybe;
    if (commits) return Kind::kCommit;
    return Has("to") ? Kind::kSession : Kind::kRollback;  // ROLLBACK TO a savepoint
  }

  // COPY … TO, of which the part in parentheses is a query.
  bool CopiesOut() const {
    int depth = 0;
    for (const Token& each : tokens_) {
      depth += IsOther(each, "(") ? 1 : IsOther(each, ")") ? -1 : 0;
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
      if (!IsOther(tokens_[place], "(")) continue;
      const Token& called = tokens_[place - 1];
      if (called.type == Token::Type::kQuoted) return Kind::kMaybe;
      if (called.type != Token::Type::kWord) continue;
      const bool qualified = place > 1 && IsOther(tokens_[place - 2], ".");
      const bool own = !qualified || (place > 2 && tokens_[place - 3].text == "pg_catalog");
      if (!own || !IsOneOf(kHarmless, called.text)) return Kind::kMaybe;
    }
    return Kind::kRead;
  }

  std::vector<Token> tokens_;
};

Kind ClassifyWith(std::string_view text, bool escapes) {
  Lexer lexer(text, escapes);
  std::vector<Token> tokens = lexer.Run();
  return lexer.sure ? Statements(std::move(tokens)).Kinds() : Kind::kMaybe;
}

}  // namespace

Kind Classify(std::string_view text) {
  const Kind kind = ClassifyWith(text, false);
  if (text.find('\\') == std::string_view::npos || ClassifyWith(text, true) == kind) return kind;
  return Kind::kMaybe;  // it depends on a setting
}

bool ReadsData(std::string_view text) {
  const std::vector<Token> tokens = Lexer(text, false).Run();
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.type == Token::Type::kWord && token.text == "from";
  });
}

bool MayRename(std::string_view text) {
  const Kind kind = Classify(text);
  if (kind == Kind::kMaybe) return true;
  if (kind != Kind::kRead && kind != Kind::kSession) return false;
  Lexer lexer(text, false);
  const std::vector<Token> tokens = lexer.Run();
  if (tokens.empty()) return false;
  const std::string& first = tokens.front().text;
  return first == "deallocate" || first == "discard" || first == "prepare";
}

}  // namespace antipode::postgresql
