/// \file
/// Why a lineage is not complete (spec LIN, BAR-19).
#ifndef ANTIPODE_GAP_H_
#define ANTIPODE_GAP_H_

#include <string>

#include "antipode/export.h"
#include "antipode/message_code.h"

namespace antipode ANTIPODE_EXPORT {

/// Why a lineage is not complete: what happened in this process, and to which store (empty: not known).
struct Gap {
  std::string reason;
  std::string store;
  std::string detail;

  /// The code of its reason (OBS-14).
  MessageCode message_code() const;
};

}  // namespace antipode

#endif  // ANTIPODE_GAP_H_
