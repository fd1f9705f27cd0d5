// Cases about objects and their versions (spec SHIM-6 to SHIM-10, SHIM-16, BAR-11).
#include "antipode/scope.h"
#include "antipode/wire.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

Lineage Deleted(Store& store, const std::string& key) {
  const Scope scope;
  store.Delete(key);
  return scope.lineage();
}

// A write is recorded, and everywhere in the region once the barrier has passed.
void Write(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage lineage = store.Written(key);
  Store::Check(lineage.IsComplete(), "the shim could not say which version the write has");
  Store::Check(!lineage.OfStore(store.name).empty(), "the write is not recorded");
  const BarrierResult result = store.Judge(lineage);
  Store::Check(result.complete(), result.Explain());
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// The versions that writes get are of the kind that the shim declares (SHIM-18): never objects beside positions, whose
// counters would need one clock (LIN-5).
void DeclaredVersions(Store& store) {
  const Versions declared = store.capabilities().versions;
  for (const WriteId& write_id : store.Written(Store::NewKey()).OfStore(store.name)) {
    Store::Check((declared == Versions::kOpaque) == (write_id.opaque() != nullptr), "another kind of version");
    Store::Check(write_id.is_position() == (declared == Versions::kPosition), "a position where objects are declared");
  }
}

// With `hash_keys` no key leaves, and writes are waited for all the same (SHIM-21).
void HashedKeys(Store& store) {
  SettingWords words;
  words.hash_keys = true;
  Store::Check(Configure(words).ok(), "configure");
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage lineage = store.Written(key);
  for (const WriteId& write_id : lineage.OfStore(store.name)) {
    Store::Check(wire::IsHashed(write_id.key()), write_id.key() + " is not hashed");
  }
  Store::Check(!store.PassesBriefly(lineage), "a false pass");
  store.Heal(store.near());
  Store::Check(store.Passes(lineage), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// The second version is waited for, and is none that was there before.
void Overwrite(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage first = store.Written(key, "1");
  Store::Check(store.Passes(first), "no pass");
  const Lineage second = store.Written(key, "2");
  Store::Check(!(second <= first), "the second version is covered by the first");
  Store::Check(store.Passes(second), "no pass");
  Store::Check(store.Shows(key, "2"), "a false pass");
}

// A replica that has the key with an older version has not got the write (BAR-11).
void OldVersion(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key, "1")), "no pass");
  store.Partition(store.near());
  const Lineage second = store.Written(key, "2");
  Store::Check(!store.PassesBriefly(second), "a false pass");
  Store::Check(store.Look(key, store.near()) == "1", "the partition does not part");
  store.Heal(store.near());
  Store::Check(store.Passes(second), "no pass");
  Store::Check(store.Shows(key, "2"), "a false pass");
}

// A version that a replica never showed is visible where a newer one of the key is (BAR-11).
void Superseded(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage first = store.Written(key, "1");
  const Lineage second = store.Written(key, "2");
  Store::Check(!store.PassesBriefly(first), "a false pass");
  store.Heal(store.near());
  Store::Check(store.Passes(first | second), "no pass");
  Store::Check(store.Shows(key, "2"), "a false pass");
  Store::Check(store.Passes(first), "no pass");
}

// Later writes take the place of earlier ones, which are waited for all the same (LIN-8, LIN-11).
void AbsorbedByAPosition(Store& store) {
  std::vector<std::string> keys;
  for (int number = 0; number < 10; ++number) keys.push_back(Store::NewKey());
  const Scope scope;
  store.Write(keys.front(), "v");
  const Lineage first = scope.lineage();
  for (std::size_t number = 1; number < keys.size(); ++number) store.Write(keys[number], "v");
  const Lineage lineage = scope.lineage();
  Store::Check(lineage.size() == 1, "the lineage grows with the writes");
  Store::Check(first <= lineage, "the first write is lost");
  Store::Check(lineage.Serialize().size() <= first.Serialize().size() + 5, "the text grows with the writes");
  Store::Check(store.Passes(lineage), "no pass");
  for (const std::string& key : keys) Store::Check(store.Shows(key, "v"), "a false pass");
}

// A deletion is waited for where the store keeps a trace of it, and else unproven (SHIM-16).
void Delete(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key)), "no pass");
  store.Partition(store.near());
  const Lineage deleted = Deleted(store, key);
  Store::Check(!store.PassesBriefly(deleted), "a false pass");
  Store::Check(store.Look(key, store.near()) == "v", "the partition does not part");
  store.Heal(store.near());
  if (store.capabilities().tombstones) {
    Store::Check(store.Passes(deleted), "no pass");
    Store::Check(store.Shows(key, std::nullopt), "a false pass");
  } else {
    Store::Check(!deleted.IsComplete() || store.VerdictOf(deleted, store.brief) == Verdict::kUnproven,
                 "a deletion without a trace is not unproven");
  }
}

// A version that was deleted since is visible where the deletion is (BAR-11).
void DeletedCountsAsSeen(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage written = store.Written(key);
  const Lineage deleted = Deleted(store, key);
  Store::Check(!store.PassesBriefly(written), "a false pass");
  store.Heal(store.near());
  if (store.capabilities().tombstones) {
    Store::Check(store.Passes(written | deleted), "no pass");
    Store::Check(store.Passes(written), "no pass");
    Store::Check(store.Shows(key, std::nullopt), "a false pass");
  } else {  // its being gone may as well be its not being there yet
    Store::Check(!store.PassesBriefly(written), "a false pass");
  }
}

// Versions do not repeat when an object is deleted and created anew (SHIM-10).
void Recreate(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage first = store.Written(key, "1") | store.Written(key, "2");
  Store::Check(store.Passes(store.Written(key, "3")), "no pass");
  const Lineage deleted = Deleted(store, key);
  if (store.capabilities().tombstones) {
    Store::Check(store.Passes(deleted), "no pass");
  } else {
    store.Until([&] { return store.Shows(key, std::nullopt); }, "the deletion arrives");
  }
  store.Partition(store.near());
  const Lineage again = store.Written(key, "1");
  Store::Check(!(again <= first), "the new object's version is covered by the old one's");
  Store::Check(!(again <= deleted), "the new object's version is covered by the deletion");
  Store::Check(!store.PassesBriefly(again), "a false pass");
  store.Heal(store.near());
  Store::Check(store.Passes(again), "no pass");
  Store::Check(store.Shows(key, "1"), "a false pass");
  if (store.capabilities().versions != Versions::kOpaque) Store::Check(store.Passes(first), "no pass: superseded");
}

// An operation that changed nothing is neither pending nor waited for in vain.
void NoOpWrite(Store& store) {
  const Scope scope;
  store.WriteNothing();
  Store::Check(scope->pending().empty(), "pending");
  Store::Check(scope->lineage().IsComplete(), "marked incomplete");
  Store::Check(store.Passes(scope->lineage()), "no pass");
}

}  // namespace

std::vector<Case> CasesOfValues() {
  const CaseShims objects{{Versions::kObject, Versions::kOpaque}, true};
  return {
      {"write", kAny, false, Write},
      {"declared_versions", kAny, false, DeclaredVersions},
      {"hashed_keys", objects, false, HashedKeys},
      {"overwrite", kNoQueues, false, Overwrite},
      {"old_version", kNoQueues, false, OldVersion},
      {"superseded", kOrdered, false, Superseded},
      {"absorbed_by_a_position", kPositions, false, AbsorbedByAPosition},
      {"delete", kNoQueues, false, Delete},
      {"deleted_counts_as_seen", kOrdered, false, DeletedCountsAsSeen},
      {"recreate", kNoQueues, false, Recreate},
      {"no_op_write", kNoQueues, false, NoOpWrite},
  };
}

}  // namespace antipode::testing
