/// \file
/// The codes of messages (spec OBS-14): each error, log line and verdict has one; `antipode explain CODE` says more.
#ifndef ANTIPODE_MESSAGE_CODE_H_
#define ANTIPODE_MESSAGE_CODE_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// The code of a message: `AP` and three digits out of spec/data/messages.json, the same in every language.
class MessageCode {
 public:
  /// A code that stands in the source: `"AP104"`.
  template <std::size_t size>
  constexpr MessageCode(const char (&code)[size]) : text_(code, size - 1) {  // NOLINT: the literal is the code
    static_assert(size == 6, "want AP and three digits");
  }

  /// For what is no message: a store that is visible, and the line that says what is in force.
  static constexpr MessageCode None() { return {}; }

  constexpr std::string_view text() const { return text_; }
  constexpr bool empty() const { return text_.empty(); }

  friend constexpr bool operator==(MessageCode a, MessageCode b) { return a.text_ == b.text_; }
  friend constexpr bool operator!=(MessageCode a, MessageCode b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, MessageCode code) { return out << code.text_; }

 private:
  constexpr MessageCode() = default;

  std::string_view text_;
};

/// The words with the code behind their first line, as in `… is not visible after 500 ms [AP201]`.
std::string WithCode(std::string_view words, MessageCode code);

}  // namespace antipode

#endif  // ANTIPODE_MESSAGE_CODE_H_
