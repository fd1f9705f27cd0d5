/// \file
/// Writing one JSON object on one line: what dry-run records need, and no more.
#ifndef ANTIPODE_SRC_BASE_JSON_H_
#define ANTIPODE_SRC_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antipode {

/// An object that is being written; the order is that of the calls.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Texts(std::string_view name, const std::vector<std::string>& values);
  JsonObject& Number(std::string_view name, double value);
  JsonObject& Integer(std::string_view name, std::int64_t value);
  JsonObject& Flag(std::string_view name, bool value);
  JsonObject& Null(std::string_view name);
  JsonObject& Object(std::string_view name, const JsonObject& value);
  JsonObject& Objects(std::string_view name, const std::vector<JsonObject>& values);

  /// The members of another object, too.
  JsonObject& With(const JsonObject& other);

  /// The object as text, without a line's end.
  std::string Written() const { return "{" + members_ + "}"; }

 private:
  JsonObject& Member(std::string_view name, std::string_view value);

  std::string members_;
};

/// The length of the UTF-8 sequence that begins at this octet; 0 where it is none.
std::size_t Utf8Length(std::string_view text, std::size_t at);

/// A text in double quotes. Octets that are no UTF-8 are replaced, so that any reader takes the line.
std::string JsonText(std::string_view text);

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_JSON_H_
