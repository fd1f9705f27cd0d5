#include "exchange.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "antipode/wire.h"
#include "findings.h"
#include "history/recorder.h"
#include "history/spelling.h"
#include "telemetry.h"

namespace antipode {
namespace {

void CountOrphans(const Lineage& lineage, const Site& site) {
  for (const std::string& store : lineage.stores()) CountOrphan(store, site);
}

void Refuse(Taken& taken, const Decision& decision, Direction direction, std::string_view sender) {
  Report(decision, direction, sender);
  const std::string dropped = "a lineage (" + Words(direction) + ") was dropped: ";
  if (decision.reason == Reason::kSeal) {
    taken.gaps.emplace_back("seal", dropped + decision.about);
    telemetry::Incomplete("seal", "");
    taken.lineage = taken.lineage.MarkedIncomplete();
  } else {
    taken.gaps.emplace_back("untrusted", dropped + std::string(ToString(decision.reason)));
  }
}

}  // namespace

bool Taken::HasGap(std::string_view reason) const {
  return std::any_of(gaps.begin(), gaps.end(), [reason](const auto& gap) { return gap.first == reason; });
}

void Taken::NoteIn(LineageScope& scope, const std::string& site) const {
  if (!lineage.empty() || !messages.empty()) {
    if (history::Recorder* const recording = history::Recorder::InForce()) recording->Received(scope, messages, lineage);
  }
  for (const auto& [reason, detail] : gaps) scope.NoteGap(reason, "", detail);
  if (CurrentSettings()->mode != Mode::kDryRun) return;
  for (const auto& [reason, detail] : gaps) {
    if (reason != "untrusted") findings::Incomplete(reason, "", &scope, site);
  }
  if (!gaps.empty()) return;
  for (const std::string& store : lineage.incomplete()) findings::Incomplete("received", store, &scope, {});
}

Taken Take(const std::vector<std::string>& texts, const Judge& judge, Direction direction, std::string_view sender) {
  Taken taken;
  std::map<std::tuple<Reason, std::string, std::string>, Decision> refused;
  bool malformed = false;
  for (const std::string& text : texts) {
    Decision decision = judge(text);
    if (!decision.accepted) {
      auto kind = std::make_tuple(decision.reason, decision.about, decision.header);
      refused.insert_or_assign(std::move(kind), std::move(decision));
      continue;
    }
    if (Result<Lineage> lineage = Lineage::Deserialize(decision.text); lineage) {
      history::Came came = history::MessagesOf(*lineage);
      taken.messages.insert(taken.messages.end(), came.messages.begin(), came.messages.end());
      taken.lineage |= came.lineage;
    } else {
      malformed = true;
      telemetry::Dropped("malformed", ToString(direction));
    }
  }
  for (const auto& [kind, decision] : refused) Refuse(taken, decision, direction, sender);
  if (malformed) {
    const std::string detail = "a lineage from " + std::string(sender.empty() ? "a local peer" : sender) + " (" +
                               Words(direction) + ") could not be read";
    taken.gaps.emplace_back("malformed", detail);
    telemetry::Incomplete("malformed", "");
    logs::Warn("malformed " + Words(direction), detail + ": what it held is missing.", "dropped");
    taken.lineage = taken.lineage.MarkedIncomplete();
  } else if (!taken.lineage.empty()) {
    telemetry::Size(ToString(direction), taken.lineage.Serialize().size());
  }
  return taken;
}

std::optional<std::string> Give(const Lineage& given, const TrustSettings& trust, Direction direction, LineageScope* sender,
                                const std::optional<Lineage>& told) {
  history::Recorder* const recording = sender == nullptr ? nullptr : history::Recorder::InForce();
  if (given.empty() && (recording == nullptr || !told)) return std::nullopt;
  const std::string message = recording == nullptr ? std::string() : recording->NewMessage();
  const Lineage lineage = recording == nullptr ? given : history::Named(given, message);
  const auto budget = static_cast<std::size_t>(CurrentSettings()->budget_bytes);
  const std::size_t seal = std::min(trust.SealLength(), budget);
  const Lineage fitted = lineage.Fit(budget - seal);
  if (!fitted.IsSame(lineage)) {
    const std::vector<std::string> before = lineage.incomplete();
    for (const std::string& store : fitted.incomplete()) {
      if (std::find(before.begin(), before.end(), store) != before.end()) continue;
      telemetry::Incomplete("budget", store);
      FoundIncomplete("budget", store);
      logs::Warn("budget " + store, "a lineage of " + std::to_string(lineage.Serialize().size()) +
                                        " bytes passes the budget: what it holds of " +
                                        (store.empty() ? "some stores" : store) + " was left out (" + Words(direction) +
                                        "). Raise ANTIPODE_BUDGET_BYTES (" + std::to_string(budget) + " now).");
    }
  }
  if (recording != nullptr) recording->Sent(*sender, message, told ? fitted | *told : fitted);
  std::string text = OutgoingText(fitted.Serialize(), trust, UnixTime());
  telemetry::Size(ToString(direction), text.size());
  return text;
}

Result<Lineage> Leaving(const LineageScope& scope, const Site& site) {
  Result<Lineage> lineage = scope.Outgoing(site);
  if (lineage) {
    std::set<std::string> stores;
    for (const PendingPtr& write : scope.pending()) stores.insert(write->store());
    for (const std::string& store : stores) telemetry::Incomplete("pending", store);
    if (scope.streaming()) {
      telemetry::Incomplete("streaming", "");
      if (CurrentSettings()->mode == Mode::kDryRun) findings::Incomplete("streaming", "", &scope, site.ToString());
    }
  }
  return lineage;
}

void MergeResponse(const ScopePtr& scope, const std::vector<std::string>& values, std::string_view host, const Site& site) {
  if (values.empty() || CurrentSettings()->mode == Mode::kOff) return;
  const std::vector<std::string_view> views(values.begin(), values.end());
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const double now = UnixTime();
  const Taken taken = Take(
      wire::UnwrapHeader(views), [&](std::string_view text) { return JudgeResponseIn(host, text, *trust, now); },
      Direction::kResponseIn, host);
  if (scope != nullptr) {
    taken.NoteIn(*scope, site.ToString());
    scope->Merge(taken.lineage, site);
  } else {
    CountOrphans(taken.lineage, site);
  }
}

void MarkUnanswered(LineageScope& scope, std::string_view host, std::string_view words, const std::optional<Site>& site) {
  scope.MarkIncomplete("unanswered", {}, "a call to " + std::string(host) + " brought no answer: " + std::string(words),
                       site);
}

void FoundIncomplete(std::string_view reason, const std::string& store) {
  if (CurrentSettings()->mode != Mode::kDryRun) return;
  findings::Incomplete(std::string(reason), store, CurrentScope().get(), {});
}

bool IsExpected(const ScopePtr& scope, std::string_view host) {
  return scope != nullptr && CurrentSettings()->mode != Mode::kOff && JudgeRequestOut(host, *CurrentTrust()).accepted;
}

}  // namespace antipode
