#include "diagnostics/telemetry.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "antipode/settings.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "diagnostics/measured.h"
#include "engine/need.h"
#include "engine/plan.h"
#include "store/registry.h"

namespace antipode::telemetry {
namespace {

// A store's name as an attribute: names come in over the wire, and each one would be a series of its own (OBS-13).
std::string_view KnownStore(std::string_view store) {
  if (store.empty() || CurrentRegistry()->Get(store) != nullptr) return store;
  const std::shared_ptr<const Settings> settings = CurrentSettings();
  const std::vector<std::string>& expected = settings->stores;
  return std::find(expected.begin(), expected.end(), store) == expected.end() ? "other" : store;
}

// What a barrier's wait for one store came to.
struct Wait {
  WaitSpan span;
  // How long after the call the last of its servers had everything; nothing where one never had.
  std::optional<Duration> lag;
};

std::optional<Wait> WaitOf(const StoreRequest& asked, const BarrierResult& result, const WaitGroup& group) {
  bool parked = false;
  bool left_out = false;
  Duration late{};
  for (const PendingWait& need : group.needs) {
    if (&need.server->store() != asked.store.get()) continue;
    parked = parked || need.parked;
    left_out = left_out || need.left_out;
    if (need.seen) late = std::max<Duration>(late, *need.seen - need.since);
  }
  if (!parked) return std::nullopt;  // every write to the store was seen at once
  const StoreResult& store = result.store(asked.store->name());
  Wait wait{{asked.store->name(), asked.store->kind(), store.verdict, store.waited}, std::nullopt};
  if (store.verdict == Verdict::kVisible && !left_out) wait.lag = wait.span.duration = late;
  return wait;
}

// Counts and measures what the lower rooms say.
class Telemetry final : public Observer {
 public:
  void LineageDropped(std::string_view reason, std::string_view direction) override {
    Add("antipode.lineage.dropped", {{"reason", reason}, {"direction", direction}});
  }

  void LineageIncomplete(const IncompleteLineage& lineage) override {
    Add("antipode.lineage.incomplete", {{"reason", lineage.reason}, {"store", KnownStore(lineage.store)}});
  }

  void LineageSized(std::string_view direction, std::size_t length) override {
    Record("antipode.lineage.size", {{"direction", direction}}, static_cast<double>(length));
  }

  // One finding, however many writes there are.
  void LineageLeftEarly(std::string_view site, const std::vector<PendingPtr>& /*uncommitted*/) override {
    Finding("published_before_commit", site);
  }

  void WriteLost(std::string_view reason, std::string_view store, std::string_view site) override {
    Add("antipode.write.lost", {{"reason", reason}, {"store", KnownStore(store)}, {"site", Bounded(site)}});
  }

  void WriteLate(std::string_view store, std::string_view site) override {
    Add("antipode.write.late", {{"store", KnownStore(store)}, {"site", Bounded(site)}});
  }

  void Fallback(std::string_view outcome) override { Add("antipode.fallback.count", {{"outcome", outcome}}); }

  void ServerAsked(std::string_view store, std::string_view purpose) override {
    Add("antipode.wait.requests", {{"store", store}, {"purpose", purpose}});
  }

  void MarksMissing(std::string_view store, std::string_view reason) override { NoteMarks(store, reason); }

  void BarrierWaited(const Plan& plan, const BarrierResult& result, const WaitGroup& group,
                     BarrierOutcome outcome) override {
    BarrierSpan barrier;
    barrier.duration = result.waited();
    barrier.outcome = ToString(outcome);
    barrier.site = Bounded(plan.site);
    barrier.policy = ToString(plan.on_timeout);
    barrier.region = InForce()->region;
    barrier.reach = plan.reach;
    barrier.satisfied = result.satisfied();
    barrier.complete = result.complete();
    barrier.dry_run = plan.dry_run;
    const std::string_view dry_run = plan.dry_run ? "true" : "false";
    Record("antipode.barrier.duration", {{"outcome", barrier.outcome}, {"site", barrier.site}, {"dry_run", dry_run}},
           Seconds(barrier.duration));
    for (const StoreRequest& asked : plan.asked) {
      std::optional<Wait> wait = WaitOf(asked, result, group);
      if (!wait) continue;
      const WaitSpan& span = wait->span;
      Record("antipode.wait.duration",
             {{"store", span.store},
              {"store.kind", span.kind},
              {"verdict", ToString(span.verdict)},
              {"reach", ToString(plan.reach)}},
             Seconds(span.duration));
      if (wait->lag) {
        Record("antipode.replica.lag", {{"store", span.store}, {"region", barrier.region}}, Seconds(*wait->lag));
      }
      barrier.waits.push_back(std::move(wait->span));
    }
    if (const std::shared_ptr<TelemetrySink> sink = Sink()) sink->Waited(barrier);
  }
};

Telemetry observer;

}  // namespace

void Listen() noexcept { AddObserver(observer); }

void Finding(std::string_view kind, std::string_view site) {
  Add("antipode.finding.count", {{"kind", kind}, {"site", Bounded(site)}});
}

void FindingEvent(const EventAttributes& about) {
  if (const std::shared_ptr<TelemetrySink> sink = Sink()) sink->Finding(about);
}

std::optional<SpanName> CurrentSpan() {
  const std::shared_ptr<TelemetrySink> sink = Sink();
  return sink ? sink->CurrentSpan() : std::nullopt;
}

void Start() {
  if (const std::shared_ptr<TelemetrySink> sink = Sink()) sink->Start();
}

}  // namespace antipode::telemetry
