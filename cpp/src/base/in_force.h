/// \file
/// The settings in force, for the engine: never an error, the defaults where the environment cannot be read.
#ifndef ANTIPODE_SRC_BASE_IN_FORCE_H_
#define ANTIPODE_SRC_BASE_IN_FORCE_H_

#include <memory>

#include "antipode/settings.h"

namespace antipode {

inline std::shared_ptr<const Settings> InForce() { return CurrentSettings(); }

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_IN_FORCE_H_
