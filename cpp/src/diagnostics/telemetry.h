// What is counted and measured of what the lower rooms say (spec OBS), and what the other observers tell of it.
#ifndef ANTIPODE_SRC_DIAGNOSTICS_TELEMETRY_H_
#define ANTIPODE_SRC_DIAGNOSTICS_TELEMETRY_H_

#include <optional>
#include <string_view>

#include "antipode/telemetry.h"

namespace antipode::telemetry {

// Has what the lower rooms say be counted from now on; called once.
void Listen() noexcept;

// A finding of dry-run: `published_before_commit` and so on.
void Finding(std::string_view kind, std::string_view site);

// The current span, if there is one, gets an event of this finding (REC-9, OBS-11).
void FindingEvent(const EventAttributes& about);

// The name of the current span; nothing where there is none, or nobody collects them.
std::optional<SpanName> CurrentSpan();

// The first barrier or request of the process.
void Start();

}  // namespace antipode::telemetry

#endif  // ANTIPODE_SRC_DIAGNOSTICS_TELEMETRY_H_
