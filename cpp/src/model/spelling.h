// The characters of spelled names: one table, one scanner (WIRE-2).
#ifndef ANTIPODE_SRC_MODEL_SPELLING_H_
#define ANTIPODE_SRC_MODEL_SPELLING_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "antipode/wire.h"

namespace antipode::wire {

namespace detail {

constexpr std::array<bool, 256> PlainTable() {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c) {
    table[static_cast<std::size_t>(c)] =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  }
  return table;
}
inline constexpr std::array<bool, 256> kPlain = PlainTable();

constexpr int UpperHexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace detail

// Whether an octet stands for itself.
inline bool IsPlain(char c) { return detail::kPlain[static_cast<unsigned char>(c)]; }

// The octet of the escape that begins at p with `_`; -1 where it is cut, in lower case, or of a plain octet.
inline int EscapedOctet(const char* p, const char* end) {
  if (end - p < 3) return -1;
  const int high = detail::UpperHexDigit(p[1]);
  const int low = detail::UpperHexDigit(p[2]);
  if (high < 0 || low < 0) return -1;
  const int octet = high * 16 + low;
  return detail::kPlain[static_cast<std::size_t>(octet)] ? -1 : octet;
}

// Moves p over a spelled name and counts its octets; false where an escape is not as it must be.
inline bool ScanName(const char*& p, const char* end, std::size_t& octets) {
  const char* const begin = p;
  std::size_t escapes = 0;
  for (;; ++escapes, p += 3) {
    p = std::find_if_not(p, end, IsPlain);
    if (p == end || *p != '_') break;
    if (EscapedOctet(p, end) < 0) return false;
  }
  octets = static_cast<std::size_t>(p - begin) - 2 * escapes;
  return true;
}

// A name as it is spelled; without a copy where every octet stands for itself, which is nearly always so.
class SpelledName {
 public:
  explicit SpelledName(std::string_view name) : text_(name) {
    if (!std::all_of(name.begin(), name.end(), IsPlain)) {
      made_ = Spell(name);
      text_ = made_;
    }
  }
  SpelledName(const SpelledName&) = delete;
  SpelledName& operator=(const SpelledName&) = delete;

  std::string_view text() const { return text_; }

 private:
  std::string made_;
  std::string_view text_;
};

}  // namespace antipode::wire

#endif  // ANTIPODE_SRC_MODEL_SPELLING_H_
