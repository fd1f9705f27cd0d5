#include "diagnostics/measured.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "antipode/store.h"
#include "base/fork.h"
#include "base/observers.h"
#include "store/store_impl.h"

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

// One instrument with one set of attributes; it stays where it is until `Reset`.
struct Number {
  std::string name;
  Attributes attributes;
  std::int64_t count = 0;
  double sum = 0.0;
};

struct Numbers {
  std::mutex mutex;
  // By name and values: ten thousand barriers may end at once.
  std::unordered_map<std::string, std::shared_ptr<Number>> all;
  std::set<std::string, std::less<>> sites;
  std::map<std::string, std::string, std::less<>> missing_marks;  // of stores, with the reasons
  std::shared_ptr<TelemetrySink> sink;
  // Of the number that is looked for. One a thread would need memory when a thread of ours begins (BAR-61), and a
  // static one would be gone at the process's end, while threads of ours still count.
  std::string key;
};

Numbers& All() { return ForkSafe<Numbers, LockOrder::kInner>(); }

const Instrument& Find(std::string_view name) {
  const auto& all = Instruments();
  return *std::find_if(all.begin(), all.end(), [&](const Instrument& each) { return each.name == name; });
}

// The number of this instrument with these attributes; the lock is held.
const std::shared_ptr<Number>& Of(std::string_view instrument, std::initializer_list<telemetry::Attribute> attributes) {
  std::string& key = All().key;
  key.assign(instrument);
  for (const auto& each : attributes) key.append(1, '\0').append(each.second);
  std::shared_ptr<Number>& number = All().all[key];
  if (!number) {
    number = std::make_shared<Number>();
    number->name = instrument;
    for (const auto& [name, value] : attributes) number->attributes.emplace("antipode." + std::string(name), value);
  }
  return number;
}

std::string Spelled(const Measurement& measured, std::string_view suffix) {
  std::string name = measured.name + std::string(suffix) + "{";
  for (const auto& [key, value] : measured.attributes) name += (name.back() == '{' ? "" : ",") + key + "=" + value;
  return name + "}";
}

}  // namespace

std::vector<Measurement> Measurements() {
  std::vector<Measurement> measured;
  for (const BarrierOutcome outcome : kBarrierOutcomes) {
    const auto count = static_cast<std::int64_t>(CountedBarriers(outcome));
    if (count == 0) continue;
    measured.push_back({"antipode.barrier.count", {{"antipode.outcome", std::string(ToString(outcome))}}, count, 0.0});
  }
  for (const auto& store : Stores()) {
    measured.push_back({"antipode.barrier.waiting", {{"antipode.store", store->name()}}, store->impl().parked(), 0.0});
  }
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    for (const auto& each : All().all) {
      const Number& number = *each.second;
      measured.push_back({number.name, number.attributes, number.count, number.sum});
    }
    for (const auto& [store, reason] : All().missing_marks) {
      measured.push_back({"antipode.marks.missing", {{"antipode.store", store}, {"antipode.reason", reason}}, 1, 0.0});
    }
  }
  std::sort(measured.begin(), measured.end(), [](const Measurement& a, const Measurement& b) {
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

void NoteMarks(std::string_view store, std::string_view missing) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  auto& all = All().missing_marks;
  if (!missing.empty()) {
    all.insert_or_assign(std::string(store), missing);
  } else if (const auto found = all.find(store); found != all.end()) {
    all.erase(found);
  }
}

void Add(std::string_view instrument, std::initializer_list<Attribute> attributes, std::uint64_t number) {
  std::shared_ptr<TelemetrySink> sink;
  std::shared_ptr<const Number> counted;
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    const std::shared_ptr<Number>& held = Of(instrument, attributes);
    held->count += static_cast<std::int64_t>(number);
    sink = All().sink;
    if (sink) counted = held;
  }
  if (sink) sink->Add(Find(instrument), counted->attributes, number);
}

void Record(std::string_view instrument, std::initializer_list<Attribute> attributes, double value) {
  std::shared_ptr<TelemetrySink> sink;
  std::shared_ptr<const Number> measured;
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    const std::shared_ptr<Number>& held = Of(instrument, attributes);
    ++held->count;
    held->sum += value;
    sink = All().sink;
    if (sink) measured = held;
  }
  if (sink) sink->Record(Find(instrument), measured->attributes, value);
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
  for (const Measurement& measured : Measurements()) {
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
