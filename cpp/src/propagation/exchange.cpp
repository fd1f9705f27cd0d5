#include "propagation/exchange.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "antipode/wire.h"
#include "base/observers.h"
#include "model/lineage_rep.h"
#include "model/quote.h"
#include "propagation/message_names.h"
#include "scope/context.h"
#include "scope/scope_impl.h"

namespace antipode {
namespace {

void CountOrphans(const Lineage& lineage, const Site& site) {
  for (const std::string& store : lineage.stores()) CountOrphan(store, site);
}

void Tell(ReceivedLineage& taken, const Decision& decision, Direction direction, std::string_view sender) {
  Report(decision, direction, sender);
  if (decision.accepted) return;  // late, and genuine
  const std::string dropped = "a lineage (" + Words(direction) + ") was dropped: ";
  if (decision.reason == Reason::kSeal) {
    taken.gaps.emplace_back("seal", dropped + decision.about);
    taken.lineage = taken.lineage.MarkedIncomplete();
  } else {
    taken.gaps.emplace_back("untrusted", dropped + std::string(ToString(decision.reason)));
  }
}

// Something of a receipt is missing, and what was to be read of it has been.
void Lose(MessageCode code, ReceivedLineage& taken, const std::string& reason, Direction direction, const std::string& detail) {
  taken.gaps.emplace_back(reason, detail);
  logs::Warn(code, reason + " " + Words(direction), detail + ": what it held is missing.", "dropped");
  taken.lineage = taken.lineage.MarkedIncomplete();
}

constexpr std::size_t kMostTexts = 16;
constexpr std::size_t kMostOctets = 16384;

Direction OutwardOf(Purpose purpose) {
  if (purpose == Purpose::kRequest) return Direction::kRequestOut;
  return purpose == Purpose::kResponse ? Direction::kResponseOut : Direction::kMessageOut;
}

}  // namespace

bool ReceivedLineage::HasGap(std::string_view reason) const {
  return std::any_of(gaps.begin(), gaps.end(), [reason](const auto& gap) { return gap.first == reason; });
}

void ReceivedLineage::NoteIn(LineageScope& scope, const std::string& site) const {
  if (!lineage.empty() || !messages.empty()) Events().LineageReceived(scope, messages, lineage);
  for (const auto& [reason, detail] : gaps) scope.impl().NoteGap(reason, "", detail);
  TellMissing(&scope, site);
  if (!gaps.empty() || CurrentSettings()->mode != Mode::kDryRun) return;
  for (const std::string& store : lineage.incomplete()) Events().IncompleteLineageReceived(store, scope);
}

void ReceivedLineage::TellMissing(const LineageScope* scope, std::string_view site) const {
  for (const auto& [reason, detail] : gaps) {
    if (reason != "untrusted") Events().LineageIncomplete({reason, {}, scope, site, scope != nullptr});
  }
}

ReceivedLineage Take(const std::vector<std::string>& texts, const Judge& judge, Direction direction, std::string_view sender) {
  ReceivedLineage taken;
  std::map<std::tuple<Reason, std::string, std::string>, Decision> told;
  std::unordered_set<std::string_view> seen;
  std::size_t octets = 0;
  bool oversize = false;
  for (const std::string& text : texts) {
    if (seen.find(text) != seen.end()) continue;
    octets += text.size();
    if (seen.size() == kMostTexts || octets > kMostOctets) {
      oversize = true;
      break;
    }
    seen.insert(text);
    Decision decision = judge(text);
    const bool accepted = decision.accepted;
    const bool by_seal = decision.reason == Reason::kSeal;
    std::string body = std::move(decision.text);
    if (decision.reason != Reason::kNone) {
      auto kind = std::make_tuple(decision.reason, decision.about, decision.header);
      told.insert_or_assign(std::move(kind), std::move(decision));
    }
    if (!accepted && !by_seal) break;  // the caller is not believed, whatever else it sent
    if (!accepted) continue;
    if (Result<Lineage> lineage = Lineage::Deserialize(body); lineage) {
      NamedMessages came = MessagesOf(*lineage);
      Lineage joined = taken.lineage | came.lineage;
      if (LineageAccess::EntryCount(joined) > wire::kMaxEntries) {
        oversize = true;
        continue;
      }
      taken.messages.insert(taken.messages.end(), came.messages.begin(), came.messages.end());
      taken.lineage = std::move(joined);
    } else {
      ++taken.malformed;
      Events().LineageDropped("malformed", ToString(direction));
    }
  }
  if (!taken.lineage.empty()) context::KnowLineage();
  for (const auto& [kind, decision] : told) Tell(taken, decision, direction, sender);
  const std::string from = sender.empty() ? std::string("a local peer") : Shown(sender);
  const std::string way = " (" + Words(direction) + ")";
  if (taken.malformed > 0) {
    Lose("AP405", taken, "malformed", direction, "a lineage from " + from + way + " could not be read");
  }
  if (oversize) {
    Events().LineageDropped("oversize", ToString(direction));
    Lose("AP408", taken, "oversize", direction,
         "what " + from + " sent" + way + " has more than 16 texts, 16,384 octets or 512 writes");
  }
  if (!taken.lineage.empty() && taken.malformed == 0) {
    Events().LineageSized(ToString(direction), taken.lineage.Serialize().size());
  }
  return taken;
}

std::optional<std::string> Give(const Lineage& given, const TrustSettings& trust, Purpose purpose, LineageScope* sender,
                                const std::vector<std::string>& changed, const std::optional<Lineage>& told) {
  const Direction direction = OutwardOf(purpose);
  if (given.empty() && !told) return std::nullopt;
  const std::string message = sender == nullptr ? std::string() : Events().MessageNamed();
  if (given.empty() && message.empty()) return std::nullopt;
  const Lineage lineage = message.empty() ? given : NamedServers(given, message);
  const auto budget = static_cast<std::size_t>(CurrentSettings()->budget_bytes);
  const std::size_t seal = std::min(trust.SealLength(), budget);
  const Lineage fitted = lineage.Fit(budget - seal, changed);
  if (!fitted.IsSame(lineage)) {
    const std::vector<std::string> before = lineage.incomplete();
    std::vector<std::string> missing;
    const ScopePtr scope = CurrentScope();
    for (const std::string& store : fitted.incomplete()) {
      if (std::find(before.begin(), before.end(), store) != before.end()) continue;
      missing.push_back(store);
      Events().LineageIncomplete({"budget", store, scope.get()});
    }
    logs::Warn("AP406", "budget",
               "a lineage of " + std::to_string(lineage.Serialize().size()) +
                   " bytes passes the budget: what it holds of " + ShownList(missing) + " was left out (" +
                   Words(direction) + "). Raise ANTIPODE_BUDGET_BYTES (" +
                   std::to_string(budget) + " now).");
  }
  if (!message.empty()) Events().LineageSent(*sender, message, told ? fitted | *told : fitted);
  std::string text = OutgoingText(fitted.Serialize(), trust, purpose, UnixTime());
  Events().LineageSized(ToString(direction), text.size());
  return text;
}

Result<Lineage> Leaving(const LineageScope& scope, const Site& site) {
  Result<Lineage> lineage = scope.Outgoing(site);
  if (lineage) {
    std::set<std::string> stores;
    for (const PendingPtr& write : scope.pending()) stores.insert(write->store());
    for (const std::string& store : stores) {  // there is a record of the pending write itself
      Events().LineageIncomplete({"pending", store, &scope, {}, false});
    }
    if (scope.closed()) Events().LineageIncomplete({"unscoped", {}, &scope, site.ToString()});  // SCOPE-34
    if (scope.impl().streaming()) Events().LineageIncomplete({"streaming", {}, &scope, site.ToString()});
  }
  return lineage;
}

void MergeResponse(const ScopePtr& scope, const std::vector<std::string>& values, std::string_view host,
                   const Site& site) {
  if (values.empty() || CurrentSettings()->mode == Mode::kOff) return;
  const std::vector<std::string_view> views(values.begin(), values.end());
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const double now = UnixTime();
  const ReceivedLineage taken = Take(
      wire::UnwrapHeader(views), [&](std::string_view text) { return JudgeResponseIn(host, text, *trust, now); },
      Direction::kResponseIn, host);
  if (scope != nullptr) {
    taken.NoteIn(*scope, site.ToString());
    scope->Merge(taken.lineage, site);
  } else {
    taken.TellMissing();
    CountOrphans(taken.lineage, site);
  }
}

void MarkUnanswered(LineageScope& scope, std::string_view host, std::string_view words,
                    const std::optional<Site>& site) {
  scope.MarkIncomplete("unanswered", {}, "a call to " + std::string(host) + " brought no answer: " + std::string(words),
                       site);
}

bool IsExpected(const ScopePtr& scope, std::string_view host) {
  return scope != nullptr && CurrentSettings()->mode != Mode::kOff && JudgeRequestOut(host, *CurrentTrust()).accepted;
}

}  // namespace antipode
