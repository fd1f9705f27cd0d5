// Cases about what was read, and the lineages that rest beside it (spec SHIM-9, SHIM-12 to SHIM-14, SHIM-20).
#include "antipode/memory.h"
#include "antipode/reading.h"
#include "antipode/scope.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

constexpr int kForeign = 300;

BarrierOptions Proceeding(Duration timeout) {
  return BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed);
}

void SetTimeout(Duration timeout) {
  SettingWords words;
  words.timeout = timeout;
  Store::Check(Configure(words).ok(), "configure");
}

void MustRead(Store& store, const std::string& key, const std::string& at, const std::string& wanted) {
  const ReadUnderTest read = store.Read(key, at);
  Store::Check(!read.error, "the read failed: " + (read.error ? read.error->message : std::string()));
  Store::Check(read.value == wanted, "read " + read.value.value_or("nothing") + ", wanted " + wanted);
}

void Done(const MemoryReply& reply) { Store::Check(reply.ok(), reply.message); }

// A read gives the native value and adds nothing to the scope, unless asked to (SHIM-12).
void AReadAddsNothing(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key)), "no pass");
  const Scope scope;
  MustRead(store, key, store.near(), "v");
  Store::Check(scope.lineage().empty(), "a read added to the scope");
  {
    const Reading seen;
    MustRead(store, key, store.near(), "v");
  }
  Store::Check(scope.lineage().empty(), "a block of reads added to the scope");
  {
    ReadingOptions merging;
    merging.merge = true;
    const Reading seen(merging);
    MustRead(store, key, store.near(), "v");
  }
  Store::Check(!scope.lineage().OfStore(store.name).empty(), "a merging block of reads added nothing");
}

// What a block of reads collects makes a barrier elsewhere wait for the very value that was read (SHIM-13).
void ReadingCoversTheValueRead(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.far());
  store.Written(key);
  store.Until([&] { return store.Shows(key, "v", {store.near()}); }, "the write reaches the near replica");
  const Reading seen;
  MustRead(store, key, store.near(), "v");
  Store::Check(!seen.lineage().OfStore(store.name).empty(), "nothing covers the value");
  Store::Check(!store.PassesBriefly(seen.lineage()), "a false pass");
  store.Heal(store.far());
  Store::Check(store.Passes(seen.lineage()), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A read inside a block with `after` waits for that lineage at its own server, or fails (BAR-51).
void ReadingAfter(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key, "1")), "no pass");
  store.Partition(store.near());
  ReadingOptions after;
  after.after = store.Written(key, "2");
  SetTimeout(store.brief);
  {
    const Reading seen(after);
    const ReadUnderTest read = store.Read(key, store.near());
    Store::Check(read.error.has_value(), "the read did not wait");
    Store::Check(read.error->code == ErrorCode::kTimedOut || read.error->code == ErrorCode::kUnproven,
                 read.error->message);
  }
  SetTimeout(store.patience);
  store.Heal(store.near());
  const Reading seen(after);
  MustRead(store, key, store.near(), "2");
}

// A writes here; B reads it and writes to another store; who reads that in C waits for what A wrote.
void ThreeRegionsTwoStores(Store& store) {
  const std::string key = Store::NewKey();
  MemoryStore index("kit-index", {"a", "b", "c"});
  MemoryClient writer_b = index.Client("a");
  MemoryClient reader_c = index.Client("c");
  ReadingOptions merging;
  merging.merge = true;
  store.Partition(store.far());
  store.Written(key);
  store.Until([&] { return store.Shows(key, "v", {store.near()}); }, "the write reaches region B");
  {
    const Scope scope;
    {
      const Reading seen(merging);
      MustRead(store, key, store.near(), "v");
    }
    Done(writer_b.Set("newest", key));
  }
  const Scope scope;
  {
    const Reading seen(merging);
    const MemoryReply newest = reader_c.Get("newest");
    Store::Check(newest.value == key, "the index has not got the entry");
  }
  Store::Check(!Barrier(Proceeding(store.brief)).satisfied(), "a false pass");
  Store::Check(!store.Look(key, store.far()), "the partition does not part");
  store.Heal(store.far());
  Store::Check(Barrier(Proceeding(store.patience)).satisfied(), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// Who reads a value depends on what its writer depended on (SHIM-9).
void ALineageRestsBesideTheValue(Store& store) {
  if (store.capabilities().rest.empty()) throw CaseSkipped("no lineages rest in this store");
  const std::string key = Store::NewKey();
  MemoryStore posts("kit-posts", {"a", "b"});
  static_cast<void>(posts.Client("b"));
  posts.Freeze("b");
  Lineage mine;
  {
    const Scope scope;
    Done(posts.Client("a").Set("p", "v"));
    store.Write(key, "v");
    mine = scope.lineage();
  }
  Store::Check(store.Passes(mine), "no pass");
  const Reading seen;
  MustRead(store, key, store.far(), "v");
  Store::Check(!seen.lineage().OfStore("kit-posts").empty(), "the lineage does not rest beside the value");
  Store::Check(!Barrier(seen.lineage(), Proceeding(std::chrono::milliseconds(100)).Stores({"kit-posts"})).satisfied(),
               "a false pass");
  posts.Heal("b");
  Store::Check(Barrier(seen.lineage(), Proceeding(store.patience).Stores({"kit-posts"})).satisfied(), "no pass");
}

// Only the first write of a process depends on nothing, where no scope says on what (SCOPE-32).
void WhatRestsOutsideAnyScope(Store& store) {
  if (store.capabilities().rest.empty()) throw CaseSkipped("no lineages rest in this store");
  const std::string first = Store::NewKey();
  const std::string second = Store::NewKey();
  store.Write(first, "v");
  store.Write(second, "v");
  for (const std::string& key : {first, second}) {
    store.Until([&] { return store.Shows(key, "v", {store.near()}); }, "the write reaches the near replica");
    const Reading seen;
    MustRead(store, key, store.near(), "v");
    Store::Check(seen.lineage().IsComplete() == (key == first), "only what has nothing before it is complete");
    Store::Check(store.Passes(seen.lineage()), "no pass");
  }
}

// What was written without Antipode reads as it is, with the empty complete lineage beside it (SHIM-14).
void DataWithoutLineage(Store& store) {
  const std::string key = Store::NewKey();
  store.RawWrite(key, "v");
  store.Until([&] { return store.Shows(key, "v"); }, "the write arrives");
  const Reading seen;
  MustRead(store, key, store.near(), "v");
  Store::Check(seen.lineage().IsComplete(), "incomplete");
  for (const std::string& name : seen.lineage().stores()) Store::Check(name == store.name, "a store out of nothing");
  Store::Check(store.Passes(seen.lineage()), "no pass");
}

// Such a value is waited for elsewhere like any other: its identifier is its version or position (SHIM-13).
void DataWithoutLineageIsCovered(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.far());
  store.RawWrite(key, "v");
  store.Until([&] { return store.Shows(key, "v", {store.near()}); }, "the write reaches the near replica");
  const Reading seen;
  MustRead(store, key, store.near(), "v");
  Store::Check(!store.PassesBriefly(seen.lineage()), "a false pass");
  store.Heal(store.far());
  Store::Check(store.Passes(seen.lineage()), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// Code without Antipode may write between: what was written before it is visible all the same.
void OverwrittenWithoutAntipode(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage lineage = store.Written(key, "1");
  store.RawWrite(key, "2");
  store.Until([&] { return store.Shows(key, "2"); }, "the second write arrives");
  Store::Check(store.Passes(lineage), "no pass");
  const Reading seen;
  MustRead(store, key, store.near(), "2");
  Store::Check(store.Passes(seen.lineage()), "no pass");
}

// A write succeeds whatever its scope depends on; what does not fit beside it leaves it incomplete (LIN-17).
void OversizedLineage(Store& store) {
  const std::string key = Store::NewKey();
  std::vector<WriteId> ids;
  for (int number = 0; number < kForeign; ++number) {
    ids.push_back(WriteId::Make("elsewhere", "object-" + std::to_string(number),
                                Ordered{"", static_cast<std::uint64_t>(number)})
                      .value());
  }
  const Lineage foreign(ids);
  Lineage mine;
  {
    const Scope scope(foreign);
    store.Write(key, "v");
    mine = scope.lineage();
  }
  Store::Check(!mine.OfStore(store.name).empty(), "the write is not recorded");
  Store::Check(store.Passes(mine), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
  if (store.capabilities().tap || store.capabilities().rest.empty()) return;
  const Reading seen;
  MustRead(store, key, store.near(), "v");
  Store::Check(foreign <= seen.lineage() || !seen.lineage().IsComplete(), "lost, and looks complete");
}

// Who read a value at one replica never reads an older one at another, after a barrier; and what was visible stays so
// (SHIM-20).
void MonotonicReads(Store& store) {
  const std::string key = Store::NewKey();
  SettingWords words;
  words.free_path_ttl = Duration::zero();
  Store::Check(Configure(words).ok(), "configure");
  store.SetLag(store.far(), std::chrono::milliseconds(150));
  for (const std::string value : {"1", "2", "3", "4"}) {
    const Lineage written = store.Written(key, value);
    store.Until([&] { return store.Shows(key, value, {store.near()}); }, "the write reaches the near replica");
    const Reading seen;
    MustRead(store, key, store.near(), value);
    Store::Check(store.Passes(seen.lineage()), "no pass");
    Store::Check(store.Look(key, store.far()) == value, "a false pass");
    MustRead(store, key, store.far(), value);
    if (store.capabilities().versions == Versions::kOpaque) continue;
    store.Written(Store::NewKey(), "beside");
    Store::Check(store.Passes(written), "it was visible a moment ago");
  }
}

}  // namespace

std::vector<Case> CasesOfReads() {
  return {
      {"a_read_adds_nothing", kNoQueues, false, AReadAddsNothing},
      {"reading_covers_the_value_read", kNoQueues, false, ReadingCoversTheValueRead},
      {"reading_after", kNoQueues, false, ReadingAfter},
      {"three_regions_two_stores", kNoQueues, false, ThreeRegionsTwoStores},
      {"a_lineage_rests_beside_the_value", kNoQueues, false, ALineageRestsBesideTheValue},
      {"what_rests_outside_any_scope", kNoQueues, false, WhatRestsOutsideAnyScope},
      {"data_without_lineage", kNoQueues, false, DataWithoutLineage},
      {"data_without_lineage_is_covered", kNoQueues, false, DataWithoutLineageIsCovered},
      {"overwritten_without_antipode", kOrdered, false, OverwrittenWithoutAntipode},
      {"oversized_lineage", kAny, false, OversizedLineage},
      {"monotonic_reads", kNoQueues, false, MonotonicReads},
  };
}

}  // namespace antipode::testing
