// Cases about servers that are promoted, restarted and re-pointed (spec EPOCH, BAR-33).
#include <atomic>
#include <optional>

#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

struct KeptWrite {
  std::string key;
  Lineage lineage;
};

// A write that is everywhere, and proved beyond its epoch.
KeptWrite Keep(Store& store) {
  KeptWrite kept{Store::NewKey("kept"), {}};
  kept.lineage = store.Written(kept.key);
  Store::Check(store.Passes(kept.lineage), "no pass");
  store.WaitMarked(kept.lineage);
  // What came before this one, the mark too, is everywhere where it is.
  Store::Check(store.Passes(store.Written(Store::NewKey())), "no pass");
  return kept;
}

// Promotes the near replica, and loses a write.
Lineage Lose(Store& store) {
  const std::string key = Store::NewKey("lost");
  Lineage lost;
  store.Promote(store.near(), [&] { lost = store.Written(key); });
  Store::Check(store.primary() == store.near(), "the near replica is not the primary");
  Store::Check(!store.Look(key, store.near()), "the write is not lost");
  return lost;
}

// A lost write does not pass; a store that knows where its epochs end says so, and does not let wait for it.
void Never(Store& store, const Lineage& lost) {
  Store::Check(!store.PassesBriefly(lost), "a false pass");
  if (store.capabilities().versions != Versions::kPosition || store.capabilities().marks == Marks::kNone) return;
  store.Until([&] { return store.VerdictOf(lost, std::chrono::milliseconds(500)) == Verdict::kUnproven; },
              "a lost write is called unproven");
}

// After a promotion without loss the earlier writes are visible, and new ones too.
void Promotion(Store& store) {
  const KeptWrite kept = Keep(store);
  store.Promote(store.near());
  Store::Check(store.Passes(kept.lineage), "no pass");
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
  const std::string key = Store::NewKey("new");
  const Lineage fresh = store.Written(key);
  Store::Check(store.Passes(fresh | kept.lineage), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// What arrived before is visible, what was lost never is, also when the new history has grown past it.
void PromotionWithLostWrites(Store& store) {
  const KeptWrite kept = Keep(store);
  const Lineage lost = Lose(store);
  Store::Check(!store.PassesBriefly(lost), "a false pass");
  Store::Check(store.Passes(kept.lineage), "no pass");
  Lineage fresh;
  for (int number = 0; number < 20; ++number) fresh = store.Written(Store::NewKey("new"), std::to_string(number));
  Store::Check(store.Passes(fresh), "no pass");
  Never(store, lost);
  Store::Check(store.Passes(kept.lineage), "no pass");
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
}

// A second promotion with no write between: the history in the middle is nearly empty.
void SecondPromotion(Store& store) {
  Store::Check(store.far() != store.near(), "one replica only");
  const KeptWrite kept = Keep(store);
  const Lineage lost = Lose(store);
  Store::Check(store.Passes(kept.lineage), "no pass");
  store.Promote(store.far());
  const BarrierResult result = store.Judge(kept.lineage);
  Store::Check(result.satisfied(), result.Explain());
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
  Store::Check(store.Passes(store.Written(Store::NewKey("new"))), "no pass");
  Never(store, lost);
}

// Barriers that wait while a replica is promoted end as late ones do: no false pass, no hang.
void ParkedAcrossAPromotion(Store& store) {
  const KeptWrite kept = Keep(store);
  const std::string lost_key = Store::NewKey("lost");
  const auto timeout = std::chrono::seconds(3);
  std::atomic<bool> lost_ended{false};
  std::atomic<bool> lost_passed{false};
  std::vector<CaseThread> threads;
  store.Promote(store.near(), [&] {
    const Lineage lost = store.Written(lost_key);
    threads.emplace_back([&, lost] {
      lost_passed = store.Judge(lost, timeout).satisfied();
      lost_ended = true;
    });
    threads.emplace_back([&] { static_cast<void>(store.Judge(kept.lineage, timeout)); });
    store.Until([&] { return store.Parked() > 0 || lost_ended; }, "the barrier waits");
  });
  for (CaseThread& thread : threads) thread.Join();
  Store::Check(lost_ended && !lost_passed, "a false pass");
  Store::Check(!store.Look(lost_key, store.near()), "the write is not lost");
  Store::Check(store.Passes(kept.lineage), "no pass");
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
}

bool CompleteSoon(const Store& store, const Lineage& lineage) {
  return store.Judge(lineage, std::chrono::seconds(1)).complete();
}

// A replica that starts again has lost its proofs, not its data.
void RestartedReplica(Store& store) {
  SettingWords words;
  words.free_path_ttl = std::chrono::seconds(60);
  Store::Check(Configure(words).ok(), "configure");
  const KeptWrite kept = Keep(store);
  store.Restart(store.near());
  store.Until([&] { return CompleteSoon(store, kept.lineage); }, "what was visible is so again");
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
  const std::string key = Store::NewKey("after");
  const Lineage after = store.Written(key);
  store.Until([&] { return CompleteSoon(store, kept.lineage | after); }, "new writes pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A primary that starts again goes on, under a new epoch or the old one.
void RestartedPrimary(Store& store) {
  const KeptWrite kept = Keep(store);
  store.Restart(store.primary());
  store.Until([&] { return store.Judge(kept.lineage, std::chrono::seconds(1)).satisfied(); },
              "what was visible stays so");
  Store::Check(store.Shows(kept.key, "v"), "a false pass");
  const std::string key = Store::NewKey("after");
  const Lineage after = store.Written(key);
  Store::Check(store.Passes(kept.lineage | after), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A replica that follows another replica is judged by what it has got, not by what that one has.
void RepointedReplica(Store& store) {
  const KeptWrite kept = Keep(store);
  store.Repoint(store.far(), store.near());
  Store::Check(store.Passes(kept.lineage), "no pass");
  const std::string key = Store::NewKey("after");
  Store::Check(store.Passes(store.Written(key)), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
  store.Partition(store.far());
  const std::string late_key = Store::NewKey("late");
  const Lineage late = store.Written(late_key);
  Store::Check(!store.PassesBriefly(late), "a false pass");
  store.Heal(store.far());
  Store::Check(store.Passes(late | kept.lineage), "no pass");
  Store::Check(store.Shows(late_key, "v") && store.Shows(kept.key, "v"), "a false pass");
}

}  // namespace

std::vector<Case> CasesOfFailovers() {
  return {
      {"promotion", kAny, true, Promotion},
      {"promotion_with_lost_writes", kAny, true, PromotionWithLostWrites},
      {"second_promotion", kAny, true, SecondPromotion},
      {"parked_across_a_promotion", kAny, true, ParkedAcrossAPromotion},
      {"restarted_replica", kAny, true, RestartedReplica},
      {"restarted_primary", kAny, true, RestartedPrimary},
      {"repointed_replica", kAny, true, RepointedReplica},
  };
}

}  // namespace antipode::testing
