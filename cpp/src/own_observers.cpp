// Who listens to the lower rooms in every process: the one place that knows both sides of the observer port.
#include "engine/announcement.h"
#include "engine/records.h"
#include "history/recorder.h"
#include "observers.h"
#include "telemetry.h"

namespace antipode {

void AddOwnObservers() noexcept {
  AnnounceFirstUse();
  telemetry::Listen();
  records::Listen();
  history::Listen();
}

}  // namespace antipode
