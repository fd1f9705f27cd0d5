#include "telemetry.h"

#include <initializer_list>
#include <mutex>
#include <set>
#include <utility>

#include "fork.h"

namespace antipode::telemetry {
namespace {

constexpr std::size_t kMostSites = 1000;

struct Counters {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> counts;
  std::set<std::string, std::less<>> sites;
};

Counters& TheCounters() { return ForkSafe<Counters, LockOrder::kInner>(); }

using Attribute = std::pair<std::string_view, std::string_view>;

void Add(std::string_view metric, std::initializer_list<Attribute> attributes, std::uint64_t number = 1) {
  std::string name(metric);
  name += '{';
  for (const auto& [key, value] : attributes) {
    if (name.back() != '{') name += ',';
    name.append("antipode.").append(key).append("=").append(value);
  }
  name += '}';
  Counters& counters = TheCounters();
  const std::lock_guard<std::mutex> lock(counters.mutex);
  counters.counts[name] += number;
}

}  // namespace

void Dropped(std::string_view reason, std::string_view direction) {
  Add("antipode.lineage.dropped", {{"reason", reason}, {"direction", direction}});
}

void Incomplete(std::string_view reason, std::string_view store) {
  Add("antipode.lineage.incomplete", {{"reason", reason}, {"store", store}});
}

void WriteLost(std::string_view reason, std::string_view store, std::string_view site) {
  Add("antipode.write.lost", {{"reason", reason}, {"store", store}, {"site", Bounded(site)}});
}

void WriteLate(std::string_view store, std::string_view site) {
  Add("antipode.write.late", {{"store", store}, {"site", Bounded(site)}});
}

void Size(std::string_view direction, std::size_t bytes) {
  Add("antipode.lineage.size.sum", {{"direction", direction}}, bytes);
  Add("antipode.lineage.size.count", {{"direction", direction}});
}

void Finding(std::string_view kind, std::string_view site) {
  Add("antipode.finding.count", {{"kind", kind}, {"site", Bounded(site)}});
}

std::map<std::string, std::uint64_t> Counts() {
  Counters& counters = TheCounters();
  const std::lock_guard<std::mutex> lock(counters.mutex);
  return counters.counts;
}

std::string Bounded(std::string_view site) {
  Counters& counters = TheCounters();
  const std::lock_guard<std::mutex> lock(counters.mutex);
  if (counters.sites.find(site) == counters.sites.end()) {
    if (counters.sites.size() >= kMostSites) return "other";
    counters.sites.emplace(site);
  }
  return std::string(site);
}

void Reset() {
  Counters& counters = TheCounters();
  const std::lock_guard<std::mutex> lock(counters.mutex);
  counters.counts.clear();
  counters.sites.clear();
}

}  // namespace antipode::telemetry
