#include "probe.h"

#include <utility>
#include <vector>

#include "antipode/logs.h"

namespace antipode::redis {

std::string Grant(const std::string& key) {
  return "Grant it: ACL SETUSER <user> +info +hget +hmget +hset +hdel +hlen +hgetall +time +eval +evalsha +multi +exec "
         "+client|tracking ~" +
         key;
}

SessionReply<Facts> Probe(Session& session, const std::string& store, const std::string& key) {
  auto replies = session.Ask({std::string(kQuestion), Pack({"INFO", "memory"}), Pack({"INFO", "cluster"}),
                              Pack({"HMGET", key, "-"})});
  if (!replies.ok()) return replies.failure();
  const Value& info = (*replies)[0];
  const std::string_view code = info.Code();
  if (info.IsError() && (code == "LOADING" || code == "MASTERDOWN" || code == "NOAUTH")) {
    return Failure{true, info.text};
  }
  Facts facts;
  facts.reached = true;
  facts.cluster = session.cluster() || WordOf((*replies)[2].text, "cluster_enabled") == "1";
  facts.policy = WordOf((*replies)[1].text, "maxmemory_policy");
  if (info.IsError()) {
    facts.refusal = info.text;
  } else {
    facts.replication = ParseReplication(info.text);
  }
  if ((*replies)[3].IsError()) facts.marks_refusal = (*replies)[3].text;
  if (!facts.refusal.empty()) {
    logs::Warn("AP506", "rights " + store,
               "writes to " + store + " are recorded as incomplete: its user may not ask where they are (" +
                   facts.refusal + "). " + Grant(key));
  }
  if (facts.policy.rfind("allkeys", 0) == 0) {
    logs::Warn("AP508", "policy " + store,
               store + " has maxmemory-policy " + facts.policy + ", which may evict the marks in " + key +
                   ": older epochs are then unproven. Set a volatile-* policy or noeviction.");
  }
  return facts;
}

}  // namespace antipode::redis
