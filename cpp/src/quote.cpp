#include "quote.h"

#include <algorithm>

namespace antipode {
namespace {

constexpr std::size_t kLongest = 64;

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (IsPrintable(c)) {
      quoted += c;
    } else {
      const auto octet = static_cast<unsigned char>(c);
      quoted += "\\x";
      quoted += kDigits[octet >> 4];
      quoted += kDigits[octet & 15];
    }
  }
  return quoted + "'";
}

std::string Shown(std::string_view text) {
  const bool plain = text.size() <= kLongest && std::all_of(text.begin(), text.end(), IsPrintable);
  return plain ? std::string(text) : Quoted(text.substr(0, kLongest));
}

}  // namespace antipode
