#include "antipode/shim_tools.h"

#include "engine/measures.h"
#include "exchange.h"
#include "telemetry.h"
#include "trust.h"

namespace antipode {

void NoteMarks(const std::string& store, const std::string& missing) { telemetry::NoteMarks(store, missing); }

void CountRequest(const std::string& store, std::string_view purpose) { telemetry::Request(store, purpose); }

void CountIncomplete(std::string_view reason, const std::string& store) {
  telemetry::Incomplete(reason, store);
  FoundIncomplete(reason, store);
}

void CountMalformedAtRest(const std::string& store) {
  telemetry::Dropped("malformed", ToString(Direction::kMessageIn));
  telemetry::Incomplete("malformed", store);
  FoundIncomplete("malformed", store);
}

}  // namespace antipode
