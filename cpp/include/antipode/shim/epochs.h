/// \file
/// Judging one position at one server, for stores whose ended epochs are decided by marks (spec EPOCH-9 to EPOCH-14).
#ifndef ANTIPODE_SHIM_EPOCHS_H_
#define ANTIPODE_SHIM_EPOCHS_H_

#include <cstdint>
#include <map>
#include <string>

#include "antipode/export.h"
#include "antipode/verdict.h"

namespace antipode ANTIPODE_EXPORT {

/// Epoch to the greatest position that is wholly there.
using Ends = std::map<std::string, std::uint64_t, std::less<>>;

/// What is known of a server at one moment, as one reply of its said.
struct EpochsAt {
  std::string current;        ///< The epoch that it follows now.
  std::uint64_t applied = 0;  ///< How far it has applied that.
  const Ends* marks = nullptr;  ///< What the marks say that it has applied; null for none.
  const Ends* known = nullptr;  ///< Ends of epochs that the server's own state proves beside them; null for none.
};

/// Whether the position `counter` of `epoch` is visible at such a server.
Visibility JudgePosition(const std::string& epoch, std::uint64_t counter, const EpochsAt& server);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_EPOCHS_H_
