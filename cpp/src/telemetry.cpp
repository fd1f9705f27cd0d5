#include "telemetry.h"

#include "measured.h"

namespace antipode::telemetry {

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
  Record("antipode.lineage.size", {{"direction", direction}}, static_cast<double>(bytes));
}

void Finding(std::string_view kind, std::string_view site) {
  Add("antipode.finding.count", {{"kind", kind}, {"site", Bounded(site)}});
}

}  // namespace antipode::telemetry
