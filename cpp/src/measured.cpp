#include "measured.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "fork.h"
#include "telemetry.h"

namespace antipode {

const std::vector<Instrument>& Instruments() {
  using Kind = InstrumentKind;
  static const auto* const all = new std::vector<Instrument>{
      {"antipode.barrier.count", Kind::kObservableCounter, "{barrier}", "Barriers"},
      {"antipode.barrier.duration", Kind::kHistogram, "s", "Barriers that waited"},
      {"antipode.barrier.waiting", Kind::kObservableUpDownCounter, "{barrier}", "Parked barriers"},
      {"antipode.fallback.count", Kind::kCounter, "{read}", "Fallback reads"},
      {"antipode.finding.count", Kind::kCounter, "{finding}", "Findings of dry-run"},
      {"antipode.lineage.dropped", Kind::kCounter, "{lineage}", "Dropped lineages"},
      {"antipode.lineage.incomplete", Kind::kCounter, "{lineage}", "Lineages that became incomplete here"},
      {"antipode.lineage.size", Kind::kHistogram, "By", "Size of lineages"},
      {"antipode.marks.missing", Kind::kObservableGauge, "{store}", "Stores that may not be marked"},
      {"antipode.replica.lag", Kind::kHistogram, "s", "Lag as seen by waits"},
      {"antipode.wait.duration", Kind::kHistogram, "s", "Waits for one store"},
      {"antipode.wait.requests", Kind::kCounter, "{request}", "Requests to servers for waiting"},
      {"antipode.write.late", Kind::kCounter, "{write}", "Writes after the header left"},
      {"antipode.write.lost", Kind::kCounter, "{write}", "Writes that no scope records"},
  };
  return *all;
}

namespace {

constexpr std::size_t kMostSites = 1000;

struct Number {
  std::int64_t count = 0;
  double sum = 0.0;
};

struct Numbers {
  std::mutex mutex;
  std::map<std::pair<std::string, Attributes>, Number> all;
  std::set<std::string, std::less<>> sites;
  std::vector<telemetry::Observe> observed;
  std::shared_ptr<TelemetrySink> sink;
};

Numbers& All() { return ForkSafe<Numbers, LockOrder::kInner>(); }

const Instrument& Find(std::string_view name) {
  const auto& all = Instruments();
  return *std::find_if(all.begin(), all.end(), [&](const Instrument& each) { return each.name == name; });
}

Attributes Named(std::initializer_list<telemetry::Attribute> attributes) {
  Attributes named;
  for (const auto& [name, value] : attributes) named.emplace("antipode." + std::string(name), value);
  return named;
}

std::string Spelled(const Measured& measured, std::string_view suffix) {
  std::string name = measured.name + std::string(suffix) + "{";
  for (const auto& [key, value] : measured.attributes) name += (name.back() == '{' ? "" : ",") + key + "=" + value;
  return name + "}";
}

}  // namespace

std::vector<Measured> Measurements() {
  std::vector<Measured> measured;
  std::vector<telemetry::Observe> observed;
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    for (const auto& [name, number] : All().all) {
      measured.push_back({name.first, name.second, number.count, number.sum});
    }
    observed = All().observed;
  }
  for (const telemetry::Observe observe : observed) observe(measured);
  std::sort(measured.begin(), measured.end(), [](const Measured& a, const Measured& b) {
    return std::tie(a.name, a.attributes) < std::tie(b.name, b.attributes);
  });
  return measured;
}

void SetTelemetrySink(std::shared_ptr<TelemetrySink> sink) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().sink.swap(sink);  // the one before ends after the lock
}

namespace telemetry {

std::shared_ptr<TelemetrySink> Sink() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  return All().sink;
}

void AddObserved(Observe observe) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().observed.push_back(observe);
}

void Add(std::string_view instrument, std::initializer_list<Attribute> attributes, std::uint64_t number) {
  const Attributes named = Named(attributes);
  std::shared_ptr<TelemetrySink> sink;
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().all[{std::string(instrument), named}].count += static_cast<std::int64_t>(number);
    sink = All().sink;
  }
  if (sink) sink->Add(Find(instrument), named, number);
}

void Record(std::string_view instrument, std::initializer_list<Attribute> attributes, double value) {
  const Attributes named = Named(attributes);
  std::shared_ptr<TelemetrySink> sink;
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    Number& held = All().all[{std::string(instrument), named}];
    ++held.count;
    held.sum += value;
    sink = All().sink;
  }
  if (sink) sink->Record(Find(instrument), named, value);
}

std::string Bounded(std::string_view site) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  if (All().sites.find(site) == All().sites.end()) {
    if (All().sites.size() >= kMostSites) return "other";
    All().sites.emplace(site);
  }
  return std::string(site);
}

std::map<std::string, std::uint64_t> Counts() {
  std::map<std::string, std::uint64_t> counts;
  for (const Measured& measured : Measurements()) {
    if (Find(measured.name).kind == InstrumentKind::kHistogram) {
      counts[Spelled(measured, ".sum")] = static_cast<std::uint64_t>(measured.sum);
      counts[Spelled(measured, ".count")] = static_cast<std::uint64_t>(measured.count);
    } else {
      counts[Spelled(measured, "")] = static_cast<std::uint64_t>(measured.count);
    }
  }
  return counts;
}

void Reset() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().all.clear();
  All().sites.clear();
}

}  // namespace telemetry
}  // namespace antipode
