// Who listens to the lower rooms in every process: the one place that knows both sides of the observer port.
#include "base/observers.h"
#include "diagnostics/announcement.h"
#include "diagnostics/followed_read.h"
#include "diagnostics/recorder.h"
#include "diagnostics/records.h"
#include "diagnostics/telemetry.h"

namespace antipode {

void AddOwnObservers() noexcept {
  AnnounceFirstUse();
  telemetry::Listen();
  records::Listen();
  FollowedRead::Listen();
  history::Listen();
}

}  // namespace antipode
