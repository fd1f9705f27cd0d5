#include "antipode/wire.h"

#include "model/digest.h"
#include "model/spelling.h"

namespace antipode::wire {
namespace {

constexpr std::string_view kUpperHex = "0123456789ABCDEF";
constexpr std::string_view kHashed{"\0h-", 3};
constexpr std::size_t kHashDigits = 32;

std::string PercentDecoded(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace

std::string Spell(std::string_view octets) {
  std::string text;
  text.reserve(octets.size());
  for (const char c : octets) {
    if (IsPlain(c)) {
      text += c;
    } else {
      const auto octet = static_cast<unsigned char>(c);
      text += '_';
      text += kUpperHex[octet >> 4];
      text += kUpperHex[octet & 15];
    }
  }
  return text;
}

std::string Unspell(std::string_view text) {
  std::string octets;
  octets.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int octet = text[i] == '_' ? EscapedOctet(text.data() + i, text.data() + text.size()) : -1;
    octets += octet < 0 ? text[i] : static_cast<char>(octet);
    if (octet >= 0) i += 2;
  }
  return octets;
}

std::string SpellKey(std::string_view key) {
  std::string text = Spell(key);
  return text.size() <= kMaxKey ? text : Spell(HashedKey(key));
}

std::string HashedKey(std::string_view key) {
  if (IsHashed(key)) return std::string(key);
  return std::string(kHashed) + Hex(Sha256(key), kHashDigits / 2);
}

bool IsHashed(std::string_view key) {
  return key.size() == kHashed.size() + kHashDigits && key.substr(0, kHashed.size()) == kHashed &&
         key.find_first_not_of("0123456789abcdef", kHashed.size()) == std::string_view::npos;
}

bool IsSpelled(std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  std::size_t octets = 0;
  return ScanName(p, end, octets) && p == end;
}

std::string_view Strip(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

std::vector<std::string> UnwrapHeader(const std::vector<std::string_view>& values) {
  std::vector<std::string> texts;
  for (const std::string_view value : values) {
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::string_view item = value.substr(begin, end - begin);
      const std::string_view text = Strip(item.substr(0, item.find(';')));
      if (text.find('%') == std::string_view::npos) {
        if (!text.empty()) texts.emplace_back(text);
      } else {
        const std::string decoded = PercentDecoded(text);
        const std::string_view stripped = Strip(decoded);
        if (!stripped.empty()) texts.emplace_back(stripped);
      }
      begin = end + 1;
    }
  }
  if (texts.empty() && !values.empty()) texts.emplace_back();
  return texts;
}

}  // namespace antipode::wire
