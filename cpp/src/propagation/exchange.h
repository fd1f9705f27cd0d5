// Between a scope and the texts that come and go: trust, budget, pending writes (spec PROP, TRUST).
#ifndef ANTIPODE_SRC_PROPAGATION_EXCHANGE_H_
#define ANTIPODE_SRC_PROPAGATION_EXCHANGE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "trust/trust.h"

namespace antipode {

using Judge = std::function<Decision(std::string_view text)>;

// What came of texts that arrived: the lineage to join, and why something is missing from it.
struct ReceivedLineage {
  Lineage lineage;
  std::vector<std::pair<std::string, std::string>> gaps;  // reason and detail
  std::vector<std::string> messages;                      // what the texts are called in a recorded history
  int malformed = 0;                                      // how many of the texts that were read are none

  bool HasGap(std::string_view reason) const;
  // Keeps the reasons for the gaps of this scope's barriers (TRUST-27); a recorded history has the receipt.
  // `site`: where it came in, for dry-run's records; empty where that is no place of the application's.
  void NoteIn(LineageScope& scope, const std::string& site) const;
  // Says what is missing; `NoteIn` does it for a scope. Outside any there is no record of it.
  void TellMissing(const LineageScope* scope = nullptr, std::string_view site = {}) const;
};

// Judges each text of one receipt and reads what is believed, within the bounds of a receipt (TRUST-1, WIRE-25, WIRE-40
// to WIRE-42).
//
// What cannot be read makes the result incomplete anywhere; what is not believed does so only under `key`, or anybody
// could switch strict barriers off from outside (TRUST-28).
ReceivedLineage Take(const std::vector<std::string>& texts, const Judge& judge, Direction direction, std::string_view sender);

// The text that leaves: within the budget, sealed if seals are asked for; nothing where nothing need leave.
//
// `sender`: whose message it leaves with, for a recorded history; null for what rests beside a value. `told`: what that
// says of it, where it is more than leaves. `changed`: the scope's stores that changed, for the budget.
std::optional<std::string> Give(const Lineage& lineage, const TrustSettings& trust, Purpose purpose,
                                LineageScope* sender, const std::vector<std::string>& changed,
                                const std::optional<Lineage>& told = std::nullopt);

// The scope's lineage as it may leave now; writes in flight are marked in the copy and counted (SCOPE-16).
Result<Lineage> Leaving(const LineageScope& scope, const Site& site);

// Joins the `antipode-lineage` values of a response or trailer from `host`, if they are believed (PROP-14); null:
// outside any scope, where they are counted.
void MergeResponse(const ScopePtr& scope, const std::vector<std::string>& values, std::string_view host,
                   const Site& site);

// Whether a lineage is expected back from `host`: it is approved, and there is a scope to join it.
bool IsExpected(const ScopePtr& scope, std::string_view host);

// A call of which one was expected brought no answer (PROP-27).
void MarkUnanswered(LineageScope& scope, std::string_view host, std::string_view words,
                    const std::optional<Site>& site);

}  // namespace antipode

#endif  // ANTIPODE_SRC_PROPAGATION_EXCHANGE_H_
