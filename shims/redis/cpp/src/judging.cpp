#include "judging.h"

#include <algorithm>
#include <cstdint>

namespace antipode::redis {
namespace {

// The history that it continued, as its own word has it, which is believed while it still holds data of that history
// without a break: a full copy that failed behind its flush leaves the word and takes the data (EPOCH-33).
Ends Before(const Replication& now) {
  if (now.before.empty() || now.before_end == 0 || !now.backlog) return {};
  return {{now.before, now.before_end - 1}};
}

}  // namespace

Ends ServerState::Proved() const {
  Ends proved = marks;
  Ends own = Before(replication);
  own[replication.epoch] = std::max(own[replication.epoch], replication.offset);
  for (const auto& [epoch, counter] : own) proved[epoch] = std::max(proved[epoch], counter);
  return proved;
}

Visibility Judge(const WriteId& write_id, const ServerState& seen) {
  const Ordered* version = write_id.ordered();
  if (!write_id.is_position() || version == nullptr) {
    return Visibility::Unproven(write_id.Section() + " is no Redis position");
  }
  const Replication& now = seen.replication;
  const Ends before = Before(now);
  Visibility answer = JudgePosition(version->epoch, version->counter, {now.epoch, now.offset, &seen.marks, &before});
  if (answer.verdict == Verdict::kVisible) return answer;
  if (version->epoch == now.epoch) {
    if (!now.link) answer.reason += ", its link to the primary is down";
  } else if (!seen.marks_known) {
    return Visibility::UnknownEpoch(answer.reason + ", and " + seen.why_no_marks);
  }
  return answer;
}

}  // namespace antipode::redis
