#include "model/text.h"

#include <algorithm>
#include <cstdint>

namespace antipode {
namespace {

char LowerOf(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char UpperOf(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// The length of the longest common subsequence: what two spellings of one name share.
std::size_t Shared(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (const char c : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = c == b[j - 1] ? diagonal + 1 : std::max(row[j], row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerOf);
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), UpperOf);
  return upper;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return LowerOf(x) == LowerOf(y); });
}

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string_view Trim(std::string_view text, std::string_view characters) {
  const std::size_t first = text.find_first_not_of(characters);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(characters) - first + 1);
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  ForEachPart(text, separator, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

std::vector<std::string> SplitList(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\r\n\v\f";
  std::vector<std::string> items;
  for (std::size_t begin = text.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    items.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBetween, end);
  }
  return items;
}

std::string Joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string joined;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) joined += separator;
    joined += text;
  }
  return joined;
}

std::optional<std::string> Base64Decoded(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  text.remove_suffix(padding);
  std::string octets;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int digit = Base64Digit(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      octets += static_cast<char>(bits >> held & 0xFF);
    }
  }
  return octets;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  double best = 0.5;
  for (const std::string& each : known) {
    const auto both = static_cast<double>(name.size() + each.size());
    const double likeness = both == 0 ? 0 : 2.0 * static_cast<double>(Shared(name, each)) / both;
    if (likeness > best || (nearest == nullptr && likeness >= best)) {
      best = likeness;
      nearest = &each;
    }
  }
  return nearest == nullptr ? std::string() : " Did you mean " + *nearest + "?";
}

}  // namespace antipode
