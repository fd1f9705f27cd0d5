#include "telemetry.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "antipode/settings.h"
#include "engine/registry.h"
#include "measured.h"

namespace antipode::telemetry {

void Dropped(std::string_view reason, std::string_view direction) {
  Add("antipode.lineage.dropped", {{"reason", reason}, {"direction", direction}});
}

namespace {

// A store's name as an attribute: names come in over the wire, and each one would be a series of its own (OBS-13).
std::string_view KnownStore(std::string_view store) {
  if (store.empty() || CurrentRegistry()->Get(store) != nullptr) return store;
  const std::shared_ptr<const Settings> settings = CurrentSettings();
  const std::vector<std::string>& expected = settings->stores;
  return std::find(expected.begin(), expected.end(), store) == expected.end() ? "other" : store;
}

}  // namespace

void Incomplete(std::string_view reason, std::string_view store) {
  Add("antipode.lineage.incomplete", {{"reason", reason}, {"store", KnownStore(store)}});
}

void WriteLost(std::string_view reason, std::string_view store, std::string_view site) {
  Add("antipode.write.lost", {{"reason", reason}, {"store", KnownStore(store)}, {"site", Bounded(site)}});
}

void WriteLate(std::string_view store, std::string_view site) {
  Add("antipode.write.late", {{"store", KnownStore(store)}, {"site", Bounded(site)}});
}

void Size(std::string_view direction, std::size_t bytes) {
  Record("antipode.lineage.size", {{"direction", direction}}, static_cast<double>(bytes));
}

void Finding(std::string_view kind, std::string_view site) {
  Add("antipode.finding.count", {{"kind", kind}, {"site", Bounded(site)}});
}

}  // namespace antipode::telemetry
