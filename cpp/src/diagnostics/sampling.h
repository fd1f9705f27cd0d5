/// \file
/// Which reads and traces dry-run follows (spec REC-12).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_SAMPLING_H_
#define ANTIPODE_SRC_DIAGNOSTICS_SAMPLING_H_

#include <optional>

#include "antipode/telemetry.h"

namespace antipode {

/// Whether what happens in this span is in the sample: by its trace, alike in every process, else by chance.
bool IsSampled(const std::optional<SpanName>& span);

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_SAMPLING_H_
