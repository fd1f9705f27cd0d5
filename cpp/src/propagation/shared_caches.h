// Which responses a shared cache may keep, for others than their caller (spec PROP-34, PROP-38, PROP-39).
#ifndef ANTIPODE_SRC_PROPAGATION_SHARED_CACHES_H_
#define ANTIPODE_SRC_PROPAGATION_SHARED_CACHES_H_

#include <string_view>

#include "antipode/carrier.h"

namespace antipode {

// The cache has the answer already, by a guess that this one need not give the reason of (RFC 9110, 15.4.5).
inline constexpr int kNotModified = 304;

// Whether a shared cache may keep this response to a request of this method; unsure, it may. Where the method is empty
// or the status 0, which says that they are not known, the headers alone say it.
bool IsShared(const Carrier& headers, std::string_view method = {}, int status = 0);

}  // namespace antipode

#endif  // ANTIPODE_SRC_PROPAGATION_SHARED_CACHES_H_
