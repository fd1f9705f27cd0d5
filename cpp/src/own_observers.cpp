// Who listens to the lower rooms in every process: the one place that knows both sides of the observer port.
#include "observers.h"
#include "telemetry.h"

namespace antipode {

void AddOwnObservers() noexcept { telemetry::Listen(); }

}  // namespace antipode
