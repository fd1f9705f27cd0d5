// Whether a server has a write: by its own history, by the one it continued, and by marks (spec EPOCH).
#ifndef ANTIPODE_REDIS_JUDGING_H_
#define ANTIPODE_REDIS_JUDGING_H_

#include <string>

#include "antipode/shim/epochs.h"
#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "info.h"

namespace antipode::redis {

// One atomic look at a server: its place in replication, and the marks in its data.
struct ServerState {
  Replication replication;
  Ends marks;               // for the epochs that were asked for
  bool marks_known = true;  // false where the marks could not be read
  std::string why_no_marks;

  // Per epoch, up to where everything is here.
  Ends Proved() const;
};

// What one look proves of one write. Never by the offset of another history.
Visibility Judge(const WriteId& write_id, const ServerState& seen);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_JUDGING_H_
