// What becomes of scopes that are open when the mode leaves `off` (spec SCOPE-26).
#ifndef ANTIPODE_SRC_BASE_MODE_CHANGES_H_
#define ANTIPODE_SRC_BASE_MODE_CHANGES_H_

#include <cstdint>

namespace antipode {

// A number that grows whenever the mode leaves `off`. A scope that was opened under another one may have written, or
// heard of writes, while nothing was recorded; so a request pays one look for what an operator does once.
std::uint64_t TimesOffEnded();

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_MODE_CHANGES_H_
