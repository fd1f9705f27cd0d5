/// \file
/// How old a server's connection counts as, for tests.
#ifndef ANTIPODE_ENGINE_RENEWAL_AGE_H_
#define ANTIPODE_ENGINE_RENEWAL_AGE_H_

#include <atomic>

#include "antipode/settings.h"

namespace antipode::renewal {

/// How much older connections are than they are.
inline std::atomic<Duration> more_age{Duration::zero()};

}  // namespace antipode::renewal

#endif  // ANTIPODE_ENGINE_RENEWAL_AGE_H_
