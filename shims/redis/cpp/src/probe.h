// What a server allows and how it is set up, asked once when a connection is wrapped (spec SHIM-3).
#ifndef ANTIPODE_REDIS_PROBE_H_
#define ANTIPODE_REDIS_PROBE_H_

#include <optional>
#include <string>
#include <string_view>

#include "info.h"
#include "session.h"

namespace antipode::redis {

// What was found out about a server.
struct Facts {
  bool reached = false;
  bool cluster = false;                    // part of a Redis Cluster, where data move between histories
  std::optional<Replication> replication;  // nothing where it refuses to say (no right to INFO)
  std::string refusal;                     // its words, where it refused
  std::string policy;                      // `maxmemory-policy`
  std::string marks_refusal;               // its words, where the marks cannot be read
};

// Asks a server what it allows, and logs once what it lacks; a failure where it does not answer now.
SessionReply<Facts> Probe(Session& session, const std::string& store, const std::string& key);

// The sentence with the exact right.
std::string Grant(const std::string& key);

inline constexpr std::string_view kCluster =
    "is part of a Redis Cluster: slots move between its servers, so a position would not speak of the data any more. "
    "Antipode does not support it yet";

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_PROBE_H_
