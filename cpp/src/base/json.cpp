#include "base/json.h"

#include <cstdio>

namespace antipode {

std::size_t Utf8Length(std::string_view text, std::size_t at) {
  const auto octet = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
  const unsigned char lead = octet(at);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : (lead & 0xF0) == 0xE0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t each = 1; each < length; ++each) {
    if ((octet(at + each) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && octet(at + 1) < 0xA0) return 0;
  if (lead == 0xED && octet(at + 1) > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && octet(at + 1) < 0x90) return 0;
  if (lead == 0xF4 && octet(at + 1) > 0x8F) return 0;
  return length;
}

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = Utf8Length(text, at);
    const char each = text[at];
    if (length == 0) {
      quoted += "\xEF\xBF\xBD";
      ++at;
      continue;
    }
    if (each == '"' || each == '\\') {
      quoted += '\\';
      quoted += each;
    } else if (static_cast<unsigned char>(each) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(each));
      quoted += escaped;
    } else {
      quoted += text.substr(at, length);
    }
    at += length;
  }
  return quoted + "\"";
}

JsonObject& JsonObject::Member(std::string_view name, std::string_view value) {
  if (!members_.empty()) members_ += ",";
  members_ += JsonText(name) + ":";
  members_ += value;
  return *this;
}

JsonObject& JsonObject::With(const JsonObject& other) {
  if (!members_.empty() && !other.members_.empty()) members_ += ",";
  members_ += other.members_;
  return *this;
}

JsonObject& JsonObject::Text(std::string_view name, std::string_view value) { return Member(name, JsonText(value)); }

JsonObject& JsonObject::Texts(std::string_view name, const std::vector<std::string>& values) {
  std::string array = "[";
  for (const std::string& value : values) array += (array.size() > 1 ? "," : "") + JsonText(value);
  return Member(name, array + "]");
}

JsonObject& JsonObject::Number(std::string_view name, double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f", value);
  for (char* each = text; *each != '\0'; ++each) {
    if (*each == ',') *each = '.';  // as a locale may have it
  }
  return Member(name, text);
}

JsonObject& JsonObject::Integer(std::string_view name, std::int64_t value) {
  return Member(name, std::to_string(value));
}

JsonObject& JsonObject::Flag(std::string_view name, bool value) { return Member(name, value ? "true" : "false"); }

JsonObject& JsonObject::Null(std::string_view name) { return Member(name, "null"); }

JsonObject& JsonObject::Object(std::string_view name, const JsonObject& value) { return Member(name, value.Written()); }

JsonObject& JsonObject::Objects(std::string_view name, const std::vector<JsonObject>& values) {
  std::string array = "[";
  for (const JsonObject& value : values) array += (array.size() > 1 ? "," : "") + value.Written();
  return Member(name, array + "]");
}

}  // namespace antipode
