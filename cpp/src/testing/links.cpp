// Cases about replicas that lag, are cut off or do not answer (spec BAR-11, BAR-21 to BAR-27).
#include <set>

#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

// No pass while one replica of the region has not got the write; a pass once it has.
void PartitionedReplica(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage lineage = store.Written(key);
  Store::Check(!store.PassesBriefly(lineage), "a false pass");
  Store::Check(!store.Look(key, store.near()), "the partition does not part");
  store.Heal(store.near());
  Store::Check(store.Passes(lineage), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A barrier that waits while the replica is cut off is released by the healing.
void ParkedInAPartition(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage lineage = store.Written(key);
  bool passed = false;
  CaseThread waiting([&] { passed = store.Passes(lineage); });
  store.Until([&] { return store.Parked() == 1; }, "the barrier waits");
  store.Heal(store.near());
  waiting.Join();
  Store::Check(passed, "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A pass speaks of every replica that readers may use, the slowest too, and names them (BAR-21, BAR-23).
void ReplicasOfDifferentLag(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.far() != store.near(), "one replica only");
  store.SetLag(store.far(), std::chrono::milliseconds(300));
  const BarrierResult result = store.Judge(store.Written(key));
  Store::Check(result.complete(), result.Explain());
  Store::Check(store.Shows(key, "v"), "a false pass");
  std::set<std::string> named;
  for (const ServerResult& server : result.store(store.name).servers) named.insert(server.address);
  Store::Check(named.size() == store.replicas().size(), "the result does not name its servers: " + result.Explain());
}

// How many replicas a pass leaves out; -1 where it does not pass.
int LeftOut(const Store& store, const Lineage& lineage) {
  const BarrierResult result = store.Judge(lineage, std::chrono::seconds(1));
  const std::size_t left = result.store(store.name).LeftOut().size();
  Store::Check(left == 0 || !result.complete(), "complete with a replica left out");
  return result.satisfied() ? static_cast<int>(left) : -1;
}

void SetOnOut(OnReplicaOut on_out) {
  SettingWords words;
  words.on_replica_out = on_out;
  Store::Check(Configure(words).ok(), "configure");
}

// A replica that does not answer is left out by name, or makes the store unproven, as was set (BAR-26).
void FrozenReplica(Store& store) {
  Store::Check(store.far() != store.near(), "one replica only");
  SettingWords words;
  words.replica_out_after = std::chrono::seconds(1);
  Store::Check(Configure(words).ok(), "configure");
  store.Until([&] { return store.Judge(store.Written(Store::NewKey())).complete(); }, "both replicas answer");
  const std::string key = Store::NewKey();
  store.Freeze(store.far());
  Lineage lineage;
  try {
    lineage = store.Written(key);
    store.Until([&] { return LeftOut(store, lineage) == 1; }, "the frozen replica is left out, and named");
    Store::Check(store.Shows(key, "v", {store.near()}), "a false pass");
    SetOnOut(OnReplicaOut::kFail);
    const Lineage late = store.Written(Store::NewKey());
    store.Until([&] { return store.VerdictOf(late, std::chrono::seconds(1)) == Verdict::kUnproven; },
                "the store is unproven without it");
    SetOnOut(OnReplicaOut::kName);
  } catch (...) {
    store.Thaw(store.far());
    throw;
  }
  store.Thaw(store.far());
  store.Until([&] { return store.Judge(lineage, std::chrono::seconds(1)).complete(); },
              "it is judged again once it answers (BAR-27)");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

}  // namespace

std::vector<Case> CasesOfLinks() {
  return {
      {"partitioned_replica", kAny, false, PartitionedReplica},
      {"parked_in_a_partition", kAny, false, ParkedInAPartition},
      {"replicas_of_different_lag", kAny, false, ReplicasOfDifferentLag},
      {"frozen_replica", kAny, false, FrozenReplica},
  };
}

}  // namespace antipode::testing
