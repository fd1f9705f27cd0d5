// Cases about writes that the scope itself does not know, and commits that it does not see (spec BAR-56, SCOPE-20,
// SCOPE-25).
#include <algorithm>

#include "antipode/scope.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

// Whether the present scope's own barrier says that a write of its own is in doubt.
bool IsInDoubt(const Store& store) {
  const auto options = [&] { return BarrierOptions().Timeout(store.patience).Stores({store.name}); };
  const BarrierResult result = Barrier(options());
  const auto& gaps = result.gaps();
  const bool doubtful = std::any_of(gaps.begin(), gaps.end(), [&](const Gap& gap) { return gap.store == store.name; });
  Store::Check(doubtful != result.complete(), result.Explain());
  if (!doubtful) return false;
  const BarrierResult strict = Barrier(options().RequireComplete(true));
  Store::Check(strict.error() != nullptr && strict.error()->code == ErrorCode::kIncomplete,
               "it is not refused: " + strict.Explain());
  Store::Check(strict.error()->message.find(store.name) != std::string::npos, strict.error()->message);
  return true;
}

// A write that is not committed shows in its scope's own barrier, and in a lineage from then (BAR-56, SCOPE-20).
void BarrierInATransaction(Store& store) {
  Lineage handed;
  {
    const Scope scope;
    store.Transaction([&](TransactionUnderTest& transaction) {
      transaction.Write(Store::NewKey(), "v");
      Store::Check(IsInDoubt(store), "its own write is in no doubt");
      handed = scope.lineage();
      return true;
    });
    Store::Check(!IsInDoubt(store), "in doubt behind its commit");
  }
  Store::Check(handed.incomplete() == std::vector<std::string>{store.name}, "not marked");
  Store::Check(!store.Judge(handed).complete(), "complete");
}

// A write whose answer never came shows in its scope's own barrier for good (BAR-56).
void BarrierBehindAnUnknownOutcome(Store& store) {
  const Scope scope;
  Store::Check(store.WriteWithUnknownOutcome(Store::NewKey(), "v"), "the client told of no error");
  Store::Check(IsInDoubt(store), "in no doubt");
  store.Until(
      [&] {
        try {
          return store.Judge(store.Written(Store::NewKey()), std::chrono::seconds(1)).complete();
        } catch (const std::exception&) {
          return false;
        }
      },
      "the store is usable again");
  Store::Check(IsInDoubt(store), "in no doubt any more");
}

// What was committed inside what seems an open transaction is recorded, whatever is rolled back (SCOPE-25).
void CommitInsideATransaction(Store& store) {
  for (const auto& [way, write] : store.CommitsInside()) {
    const std::string key = Store::NewKey();
    store.Partition(store.near());
    Lineage lineage;
    {
      const Scope scope;
      write(key, "v");
      lineage = scope.lineage();
    }
    const bool is_there = store.capabilities().tap || store.Look(key, store.primary()) == "v";
    Store::Check(is_there, way + ": it is not committed");
    Store::Check(!lineage.OfStore(store.name).empty(), way + ": it is not recorded");
    Store::Check(!store.PassesBriefly(lineage), way + ": a false pass");
    store.Heal(store.near());
    Store::Check(store.Passes(lineage), way + ": no pass");
    Store::Check(store.Shows(key, "v"), way + ": a false pass");
  }
}

}  // namespace

std::vector<Case> CasesOfDoubts() {
  return {
      {"barrier_in_a_transaction", kAny, false, BarrierInATransaction},
      {"barrier_behind_an_unknown_outcome", kAny, false, BarrierBehindAnUnknownOutcome},
      {"commit_inside_a_transaction", kAny, false, CommitInsideATransaction},
  };
}

}  // namespace antipode::testing
