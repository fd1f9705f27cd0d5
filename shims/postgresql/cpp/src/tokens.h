// The parts of a statement that matter: no comments, and nothing of what stands in literals.
#ifndef ANTIPODE_POSTGRESQL_SRC_TOKENS_H_
#define ANTIPODE_POSTGRESQL_SRC_TOKENS_H_

#include <string>
#include <string_view>
#include <vector>

namespace antipode::postgresql {

// One part of a statement.
struct Token {
  enum class Type { kWord, kQuoted, kLiteral, kOther };
  Type type = Type::kOther;
  std::string text;  // words in lower case; of others the character itself; of literals nothing

  bool IsWord(std::string_view word) const { return type == Type::kWord && text == word; }
  bool IsOther(std::string_view sign) const { return type == Type::kOther && text == sign; }
  bool IsName() const { return type == Type::kWord || type == Type::kQuoted; }

  bool operator==(const Token& other) const { return type == other.type && text == other.text; }
};

// A statement's parts, in order.
struct Tokens {
  std::vector<Token> all;
  bool sure = true;  // false where a literal, a name or a comment does not end
  bool spelled = false;  // a name is spelled by numbers of letters (U&"…"): nobody here reads which one it is
};

// Divides a text as the server does. `escapes`: a backslash escapes in every literal (standard_conforming_strings =
// off).
Tokens Divide(std::string_view text, bool escapes);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_TOKENS_H_
