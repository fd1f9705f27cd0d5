#include "model/quote.h"

#include <algorithm>

namespace antipode {
namespace {

constexpr std::size_t kLongest = 64;
constexpr std::size_t kMostListed = 5;

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

std::string ShownList(const std::vector<std::string>& names) {
  std::string listed;
  const std::size_t shown = std::min(names.size(), kMostListed);
  for (std::size_t i = 0; i < shown; ++i) {
    listed.append(i == 0 ? "" : ", ").append(names[i].empty() ? "some stores" : Shown(names[i]));
  }
  return shown == names.size() ? listed : listed + " and " + std::to_string(names.size() - shown) + " more";
}

}  // namespace antipode
