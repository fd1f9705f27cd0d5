#include "antipode/shim_tools.h"

#include "engine/measures.h"

namespace antipode {

void NoteMarks(const std::string& store, const std::string& missing) { telemetry::NoteMarks(store, missing); }

void CountRequest(const std::string& store, std::string_view purpose) { telemetry::Request(store, purpose); }

void CountIncomplete(std::string_view reason, const std::string& store) { telemetry::Incomplete(reason, store); }

void FoundBehind(const Site& site) { telemetry::Finding("behind", site.ToString()); }

}  // namespace antipode
