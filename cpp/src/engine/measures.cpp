#include "engine/measures.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "antipode/store.h"
#include "engine/time.h"
#include "fork.h"
#include "measured.h"

namespace antipode::telemetry {
namespace {

constexpr std::array kOutcomes = {Outcome::kFree,    Outcome::kSatisfied,  Outcome::kTimedOut,  Outcome::kUnproven,
                                  Outcome::kVacuous, Outcome::kIncomplete, Outcome::kOverloaded};

std::array<std::atomic<std::uint64_t>, kOutcomes.size()> barriers{};

struct Marks {
  std::mutex mutex;
  std::map<std::string, std::string> missing;
};

Marks& TheMarks() { return ForkSafe<Marks, LockOrder::kInner>(); }

// What is read when somebody looks: outcomes, parked barriers, marks that are missing.
void Observed(std::vector<Measured>& measured) {
  for (const Outcome outcome : kOutcomes) {
    const auto count = static_cast<std::int64_t>(Barriers(outcome));
    if (count == 0) continue;
    measured.push_back({"antipode.barrier.count", {{"antipode.outcome", std::string(ToString(outcome))}}, count, 0.0});
  }
  for (const auto& store : Stores()) {
    measured.push_back({"antipode.barrier.waiting", {{"antipode.store", store->name()}}, store->parked(), 0.0});
  }
  const std::lock_guard<std::mutex> lock(TheMarks().mutex);
  for (const auto& [store, reason] : TheMarks().missing) {
    measured.push_back({"antipode.marks.missing", {{"antipode.store", store}, {"antipode.reason", reason}}, 1, 0.0});
  }
}

}  // namespace

std::string_view ToString(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kFree:
      return "free";
    case Outcome::kSatisfied:
      return "satisfied";
    case Outcome::kTimedOut:
      return "timed_out";
    case Outcome::kUnproven:
      return "unproven";
    case Outcome::kVacuous:
      return "vacuous";
    case Outcome::kIncomplete:
      return "incomplete";
    case Outcome::kOverloaded:
      return "overloaded";
  }
  return "timed_out";
}

void CountBarrier(Outcome outcome) noexcept {
  barriers[static_cast<std::size_t>(outcome)].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t Barriers(Outcome outcome) noexcept {
  return barriers[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
}

void BarrierWaited(const BarrierSpan& barrier, const std::vector<Wait>& waits) {
  const std::string site = Bounded(barrier.site);
  const std::string_view reach = ToString(barrier.reach);
  Record("antipode.barrier.duration",
         {{"outcome", barrier.outcome}, {"site", site}, {"dry_run", barrier.dry_run ? "true" : "false"}},
         Seconds(barrier.duration));
  for (const Wait& wait : waits) {
    Record("antipode.wait.duration",
           {{"store", wait.store}, {"store.kind", wait.kind}, {"verdict", ToString(wait.verdict)}, {"reach", reach}},
           Seconds(wait.duration));
    if (wait.lag) {
      Record("antipode.replica.lag", {{"store", wait.store}, {"region", barrier.region}}, Seconds(*wait.lag));
    }
  }
  const std::shared_ptr<TelemetrySink> sink = Sink();
  if (!sink) return;
  BarrierSpan span = barrier;
  span.site = site;
  for (const Wait& wait : waits) span.waits.push_back({wait.store, wait.kind, wait.verdict, wait.duration});
  sink->Waited(span);
}

void Request(const std::string& store, std::string_view purpose) {
  Add("antipode.wait.requests", {{"store", store}, {"purpose", purpose}});
}

void Fallback(std::string_view outcome) { Add("antipode.fallback.count", {{"outcome", outcome}}); }

void NoteMarks(const std::string& store, const std::string& missing) {
  Install();  // a store may be wrapped, and its marks be missing, before the first barrier
  const std::lock_guard<std::mutex> lock(TheMarks().mutex);
  if (missing.empty()) {
    TheMarks().missing.erase(store);
  } else {
    TheMarks().missing[store] = missing;
  }
}

std::optional<SpanName> CurrentSpan() {
  const std::shared_ptr<TelemetrySink> sink = Sink();
  return sink ? sink->CurrentSpan() : std::nullopt;
}

void FindingEvent(const EventAttributes& about) {
  if (const std::shared_ptr<TelemetrySink> sink = Sink()) sink->Finding(about);
}

void Install() {
  static const bool installed = (AddObserved(Observed), true);
  static_cast<void>(installed);
}

void Start() {
  if (const std::shared_ptr<TelemetrySink> sink = Sink()) sink->Start();
}

}  // namespace antipode::telemetry
