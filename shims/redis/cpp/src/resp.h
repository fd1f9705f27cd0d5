// A small reader of RESP 2 and 3, for our own connections: answers and pushes come on one socket, and hiredis 0.14
// knows no pushes.
#ifndef ANTIPODE_REDIS_RESP_H_
#define ANTIPODE_REDIS_RESP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace antipode::redis {

// One message, or a part of one.
struct Value {
  // kStatus holds whatever is said in one line besides numbers: a double, a truth value. A map is its keys and values
  // in turn.
  enum class Kind { kNull, kText, kStatus, kError, kInteger, kArray, kMap, kPush };

  Kind kind = Kind::kNull;
  std::string text;
  std::int64_t integer = 0;
  std::vector<Value> items;

  bool IsError() const { return kind == Kind::kError; }
  bool IsText() const { return kind == Kind::kText || kind == Kind::kStatus; }
  bool IsArray() const { return kind == Kind::kArray; }
  // An error's first word: NOPERM, LOADING, …
  std::string_view Code() const { return std::string_view(text).substr(0, text.find(' ')); }
};

// Takes bytes, gives whole messages.
class Reader {
 public:
  void Feed(std::string_view data);

  // The next message; nothing where it has not arrived whole, or where the server does not speak RESP (`broken`).
  std::optional<Value> Take();

  // What was no RESP; empty while all was.
  const std::string& broken() const { return broken_; }

 private:
  bool Read(Value& value, int depth);
  bool Line(char& kind, std::string_view& line);
  bool Items(Value& value, std::int64_t count, int depth);
  bool Broken(char kind, std::string_view line);

  std::string data_;
  std::size_t at_ = 0;
  std::string broken_;
};

// One command in the protocol's form.
std::string Pack(const std::vector<std::string_view>& words);

// The words of a command that was packed so; nothing where it was not.
std::optional<std::vector<std::string_view>> Unpack(std::string_view packed);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_RESP_H_
