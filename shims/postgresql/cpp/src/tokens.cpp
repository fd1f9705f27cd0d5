#include "tokens.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace antipode::postgresql {
namespace {

bool IsLetter(char c) {
  const auto octet = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || octet >= 0x80;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsPartOfWord(char c) { return IsLetter(c) || IsDigit(c) || c == '$'; }

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Lexer {
 public:
  Lexer(std::string_view text, bool escapes) : text_(text), escapes_(escapes) {}

  Tokens Run() {
    while (at_ < text_.size() && found_.sure) Next();
    return std::move(found_);
  }

 private:
  char Peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Next() {
    const char c = Peek();
    if (IsSpace(c)) {
      ++at_;
    } else if (c == '-' && Peek(1) == '-') {
      while (at_ < text_.size() && !IsLineEnd(Peek())) ++at_;
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
      found_.all.push_back({Token::Type::kOther, std::string(1, c)});
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
    found_.sure = depth == 0;
  }

  void Literal(bool escapes) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\\' && escapes) {
        ++at_;
      } else if (c == '\'') {
        if (Peek() != '\'' && !GoesOn()) {
          found_.all.push_back({Token::Type::kLiteral, {}});
          return;
        }
        ++at_;
      }
    }
    found_.sure = false;
  }

  // Whether a literal that has ended goes on in a later line, and under the same rules; then that is the next place.
  bool GoesOn() {
    bool in_next_line = false;
    std::size_t next = at_;
    while (next < text_.size()) {
      if (IsSpace(text_[next])) {
        in_next_line = in_next_line || IsLineEnd(text_[next]);
        ++next;
      } else if (text_.substr(next, 2) == "--") {
        while (next < text_.size() && !IsLineEnd(text_[next])) ++next;
      } else {
        break;
      }
    }
    if (!in_next_line || next >= text_.size() || text_[next] != '\'') return false;
    at_ = next;
    return true;
  }

  void Quoted() {
    std::string name;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        if (Peek() != '"') {
          found_.all.push_back({Token::Type::kQuoted, std::move(name)});
          return;
        }
        ++at_;
      }
      name += c;
    }
    found_.sure = false;
  }

  void Dollars() {
    const std::size_t end = text_.find('$', at_ + 1);
    const std::string_view tag = end == std::string_view::npos ? "" : text_.substr(at_, end + 1 - at_);
    const bool plain = !tag.empty() && std::all_of(tag.begin() + 1, tag.end() - 1, IsPartOfWord);
    const std::size_t close = plain ? text_.find(tag, end + 1) : std::string_view::npos;
    if (close == std::string_view::npos) {
      found_.sure = false;
      return;
    }
    at_ = close + tag.size();
    found_.all.push_back({Token::Type::kLiteral, {}});
  }

  void Word() {
    std::string word;
    while (IsPartOfWord(Peek())) word += Lower(text_[at_++]);
    if (word == "u" && text_.substr(at_, 2) == "&\"") found_.spelled = true;
    if (Peek() == '\'' && (word == "e" || word == "b" || word == "x" || word == "n")) {
      Literal(escapes_ || word == "e");
    } else {
      found_.all.push_back({Token::Type::kWord, std::move(word)});
    }
  }

  const std::string_view text_;
  const bool escapes_;
  std::size_t at_ = 0;
  Tokens found_;
};

}  // namespace

Tokens Divide(std::string_view text, bool escapes) { return Lexer(text, escapes).Run(); }

}  // namespace antipode::postgresql
