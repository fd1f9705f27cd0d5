#include "antipode/shim/shim_tools.h"

#include "antipode/scope.h"
#include "base/observers.h"
#include "trust/trust.h"

namespace antipode {

void NoteMarks(const std::string& store, const std::string& missing) { Events().MarksMissing(store, missing); }

void CountRequest(const std::string& store, std::string_view purpose) { Events().ServerAsked(store, purpose); }

void CountIncomplete(std::string_view reason, const std::string& store) {
  Events().LineageIncomplete({reason, store, CurrentScope().get()});
}

void CountMalformedAtRest(const std::string& store) {
  Events().LineageDropped("malformed", ToString(Direction::kMessageIn));
  CountIncomplete("malformed", store);
}

void NoteJoined(const ScopePtr& ended, const ScopePtr& scope) {
  if (ended != nullptr && scope != nullptr) Events().ScopesJoined(*ended, *scope);
}

}  // namespace antipode
