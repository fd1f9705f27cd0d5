#include "judging.h"

#include <algorithm>
#include <cstdint>

namespace antipode::redis {
namespace {

std::string Short(const std::string& epoch) { return epoch.substr(0, 4) + "…"; }

std::string At(const std::string& epoch, std::uint64_t counter) { return Short(epoch) + "." + std::to_string(counter); }

}  // namespace

Ends Seen::Proved() const {
  Ends proved = marks;
  const auto raise = [&](const std::string& epoch, std::uint64_t counter) {
    const auto [place, added] = proved.emplace(epoch, counter);
    if (!added) place->second = std::max(place->second, counter);
  };
  raise(replication.epoch, replication.offset);
  if (!replication.before.empty() && replication.before_end > 0) raise(replication.before, replication.before_end - 1);
  return proved;
}

Visibility Judge(const WriteId& write_id, const Seen& seen) {
  const Ordered* version = write_id.ordered();
  if (!write_id.is_position() || version == nullptr) {
    return Visibility::Unproven(write_id.Section() + " is no Redis position");
  }
  const Replication& now = seen.replication;
  const Ends proved = seen.Proved();
  const auto reached = proved.find(version->epoch);
  if (reached != proved.end() && version->counter <= reached->second) return Visibility::Visible();
  if (version->epoch == now.epoch) {
    return Visibility::NotYet("at " + At(now.epoch, now.offset) + ", wanted " + std::to_string(version->counter) +
                              (now.link ? "" : ", its link to the primary is down"));
  }
  if (!seen.marks_known) return Visibility::UnknownEpoch("in epoch " + Short(now.epoch) + ", and " + seen.why_no_marks);
  const auto mark = seen.marks.find(version->epoch);
  if (mark != seen.marks.end() && seen.IsPast()) {
    return Visibility::Unproven("epoch " + Short(version->epoch) + " has ended here, and no mark covers " +
                                std::to_string(version->counter) + ": " + std::to_string(mark->second) +
                                " is the last that is known to be here");
  }
  if (reached != proved.end()) {
    return Visibility::NotYet("in epoch " + Short(now.epoch) + ", has " + Short(version->epoch) + " up to " +
                              std::to_string(reached->second) + ", and no mark of its own epoch yet");
  }
  return Visibility::UnknownEpoch("in epoch " + Short(now.epoch) + ", and does not know " + Short(version->epoch));
}

}  // namespace antipode::redis
