#include "resp.h"

#include <charconv>

namespace antipode::redis {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kSkimmed = 65536;

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

void Reader::Feed(std::string_view data) { data_.append(data); }

std::optional<Value> Reader::Take() {
  if (!broken_.empty() || at_ == data_.size()) return std::nullopt;
  const std::size_t start = at_;
  Value value;
  if (!Read(value, 0)) {
    at_ = start;
    return std::nullopt;
  }
  if (at_ == data_.size()) {
    data_.clear();
    at_ = 0;
  } else if (at_ > kSkimmed) {
    data_.erase(0, at_);
    at_ = 0;
  }
  return value;
}

bool Reader::Line(char& kind, std::string_view& line) {
  const std::size_t end = data_.find("\r\n", at_);
  if (end == std::string::npos) return false;
  if (end == at_) return Broken(' ', {});
  kind = data_[at_];
  line = std::string_view(data_).substr(at_ + 1, end - at_ - 1);
  at_ = end + 2;
  return true;
}

bool Reader::Broken(char kind, std::string_view line) {
  broken_ = "the server does not speak RESP: " + std::string(1, kind) + std::string(line.substr(0, 60));
  return false;
}

bool Reader::Items(Value& value, std::int64_t count, int depth) {
  for (std::int64_t place = 0; place < count; ++place) {
    if (!Read(value.items.emplace_back(), depth + 1)) return false;
  }
  return true;
}

bool Reader::Read(Value& value, int depth) {
  char kind = 0;
  std::string_view line;
  if (depth > kDeepest) return Broken('*', "too deep");
  if (!Line(kind, line)) return false;
  switch (kind) {
    case '+':
    case ',':
    case '#':
    case '(':
    case '-':
      value.kind = kind == '-' ? Value::Kind::kError : Value::Kind::kStatus;
      value.text = line;
      return true;
    case '_':
      return true;
    default:
      break;
  }
  const std::optional<std::int64_t> number = Number(line);
  if (!number || (kind != ':' && *number < -1)) return Broken(kind, line);
  switch (kind) {
    case ':':
      value.kind = Value::Kind::kInteger;
      value.integer = *number;
      return true;
    case '$':
    case '=':
    case '!': {
      if (*number < 0) return true;
      const auto size = static_cast<std::size_t>(*number);
      if (data_.size() - at_ < size + 2) return false;
      value.kind = kind == '!' ? Value::Kind::kError : Value::Kind::kText;
      const std::size_t tag = kind == '=' && size >= 4 ? 4 : 0;  // `txt:`
      value.text = data_.substr(at_ + tag, size - tag);
      at_ += size + 2;
      return true;
    }
    case '*':
    case '~':
    case '>':
      if (*number < 0) return true;
      value.kind = kind == '>' ? Value::Kind::kPush : Value::Kind::kArray;
      return Items(value, *number, depth);
    case '%':
      value.kind = Value::Kind::kMap;
      return Items(value, 2 * *number, depth);
    case '|': {  // attributes of the message that follows: nobody asked for them
      Value attributes;
      return Items(attributes, 2 * *number, depth) && Read(value, depth + 1);
    }
    default:
      return Broken(kind, line);
  }
}

std::string Pack(const std::vector<std::string_view>& words) {
  std::string packed = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    packed.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
  return packed;
}

std::optional<std::vector<std::string_view>> Unpack(std::string_view packed) {
  std::size_t at = 0;
  const auto count = [&](char kind) -> std::optional<std::size_t> {
    const std::size_t end = packed.find("\r\n", at);
    if (end == std::string_view::npos || end == at || packed[at] != kind) return std::nullopt;
    const auto number = Number(packed.substr(at + 1, end - at - 1));
    at = end + 2;
    if (!number || *number < 0) return std::nullopt;
    return static_cast<std::size_t>(*number);
  };
  const auto size = count('*');
  if (!size) return std::nullopt;
  std::vector<std::string_view> words;
  for (std::size_t place = 0; place < *size; ++place) {
    const auto length = count('$');
    if (!length || packed.size() - at < *length + 2) return std::nullopt;
    words.push_back(packed.substr(at, *length));
    at += *length + 2;
  }
  if (at != packed.size()) return std::nullopt;
  return words;
}

}  // namespace antipode::redis
