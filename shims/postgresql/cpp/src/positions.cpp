#include "positions.h"

#include <charconv>
#include <cstdio>

namespace antipode::postgresql {
namespace {

template <typename T>
std::optional<T> Number(std::string_view text, int base) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, base);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

// Lower case alone: from_chars takes both.
bool IsSpelled(std::string_view text, std::size_t longest) {
  if (text.empty() || text.size() > longest) return false;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'))) return false;
  }
  return true;
}

}  // namespace

std::string Epoch::Name() const {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, system, 36).ptr;
  std::string name(digits, end);
  name += '-' + std::to_string(timeline);
  if (!word.empty()) name += '-' + word;
  return name;
}

std::optional<Epoch> EpochOf(std::string_view name) {
  const std::size_t first = name.find('-');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = name.find('-', first + 1);
  const std::string_view system = name.substr(0, first);
  const std::string_view timeline =
      name.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  const std::string_view word = second == std::string_view::npos ? "" : name.substr(second + 1);
  if (!IsSpelled(system, 13) || (second != std::string_view::npos && !IsSpelled(word, 7))) return std::nullopt;
  const auto system_number = Number<std::uint64_t>(system, 36);
  const auto timeline_number = Number<std::uint32_t>(timeline, 10);
  if (!system_number || !timeline_number) return std::nullopt;
  return Epoch{*system_number, *timeline_number, std::string(word)};
}

std::optional<std::uint64_t> NumberOf(std::string_view lsn) {
  const std::size_t slash = lsn.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto high = Number<std::uint32_t>(lsn.substr(0, slash), 16);
  const auto low = Number<std::uint32_t>(lsn.substr(slash + 1), 16);
  if (!high || !low) return std::nullopt;
  return (std::uint64_t{*high} << 32) + *low;
}

std::string LsnOf(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%X/%X", static_cast<unsigned>(number >> 32), static_cast<unsigned>(number));
  return text;
}

std::optional<std::uint64_t> DecimalOf(std::string_view text) { return Number<std::uint64_t>(text, 10); }

}  // namespace antipode::postgresql
