// Cases about writers: at once, in transactions, of unknown outcome, without rights (spec SCOPE-14 to SCOPE-18).
#include "antipode/carry.h"
#include "antipode/messages.h"
#include "antipode/scope.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

constexpr int kWriters = 4;
constexpr int kEach = 25;

using KeysOfWriters = std::vector<std::vector<std::string>>;

KeysOfWriters NewKeys() {
  KeysOfWriters keys(kWriters);
  for (auto& mine : keys) {
    for (int number = 0; number < kEach; ++number) mine.push_back(Store::NewKey());
  }
  return keys;
}

void CheckAllShown(Store& store, const KeysOfWriters& keys) {
  for (const auto& mine : keys) {
    for (const std::string& key : mine) Store::Check(store.Shows(key, "v"), "a false pass");
  }
}

void InThreads(const std::function<void(std::size_t number)>& work) {
  std::vector<CaseThread> threads;
  for (std::size_t number = 0; number < kWriters; ++number) threads.emplace_back([&work, number] { work(number); });
  for (CaseThread& thread : threads) thread.Join();
}

void SetOnPending(OnPending on_pending) {
  SettingWords words;
  words.on_pending = on_pending;
  Store::Check(Configure(words).ok(), "configure");
}

// What leaves the current scope now.
Lineage Leaving() {
  const Result<std::string> text = Serialize();
  Store::Check(text.ok(), text.ok() ? "" : text.error().message);
  return Deserialize(*text).value();
}

std::vector<std::string> Only(const Store& store) { return {store.name}; }

// Requests that write the same objects at once: each one's writes, or later ones, are waited for.
void ConcurrentWriters(Store& store) {
  const std::string shared = Store::NewKey("shared");
  const bool queue = store.capabilities().tap;
  const KeysOfWriters keys = NewKeys();
  std::vector<Lineage> lineages(kWriters);
  InThreads([&](std::size_t number) {
    const Scope scope;
    for (const std::string& key : keys[number]) {
      store.Write(key, "v");
      if (!queue) store.Write(shared, std::to_string(number));
    }
    lineages[number] = scope.lineage();
  });
  Lineage whole;
  for (const Lineage& lineage : lineages) {
    Store::Check(!lineage.OfStore(store.name).empty() && lineage.IsComplete(), "a writer's lineage is not whole");
    whole |= lineage;
  }
  if (store.capabilities().versions == Versions::kOpaque && !queue) {  // of `shared` only the last is there
    for (const WriteId& write_id : whole.OfStore(store.name)) {
      if (write_id.key() == shared) whole = whole.Without(write_id);
    }
  }
  const BarrierResult result = store.Judge(whole);
  Store::Check(result.satisfied(), result.Explain());
  CheckAllShown(store, keys);
  const auto agree = [&] { return store.Shows(shared, store.Look(shared, store.primary())); };
  if (queue) return;
  if (store.capabilities().versions == Versions::kPosition) {
    Store::Check(agree(), "a false pass");
  } else {  // which of writes that met is the last one, replicas may come to agree on a moment later
    store.Until(agree, "the replicas agree");
  }
}

// Threads of one request write at once, and nothing is lost of its lineage (SCOPE-2, LIN-29).
void ParallelConnectionsOfOneScope(Store& store) {
  const KeysOfWriters keys = NewKeys();
  Lineage lineage;
  {
    const Scope scope;
    InThreads(Carry([&](std::size_t number) {
      for (const std::string& key : keys[number]) store.Write(key, "v");
    }));
    Store::Check(scope->pending().empty() && scope->gaps().empty(), "something is left of the writes");
    lineage = scope.lineage();
  }
  Store::Check(lineage.IsComplete(), "incomplete");
  Store::Check(store.Passes(lineage), "no pass");
  CheckAllShown(store, keys);
}

// What leaves before the commit is marked; the position is taken after it (SCOPE-14, SCOPE-18, SHIM-11).
void OpenTransaction(Store& store) {
  const std::string key = Store::NewKey();
  Lineage lineage;
  {
    const Scope scope;
    store.Transaction([&](TransactionUnderTest& transaction) {
      transaction.Write(key, "v");
      Store::Check(Leaving().incomplete() == Only(store), "what leaves is not marked");
      SetOnPending(OnPending::kRaise);
      const Result<std::string> refused = Serialize();
      SetOnPending(OnPending::kMark);
      Store::Check(!refused.ok() && refused.error().code == ErrorCode::kPendingWrite, "what leaves is not refused");
      return true;
    });
    Store::Check(scope->pending().empty(), "pending");
    Store::Check(Leaving().IsComplete(), "marked");
    lineage = scope.lineage();
  }
  Store::Check(!lineage.OfStore(store.name).empty(), "the write is not recorded");
  Store::Check(store.Passes(lineage), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// Each scope that wrote in a shared transaction waits for its commit, whoever began it; so does the one that commits it
// (SCOPE-24).
void TransactionOverTwoScopes(Store& store) {
  for (const bool begun_outside : {true, false}) {
    const std::vector<std::string> keys = {Store::NewKey(), Store::NewKey(), Store::NewKey()};
    const std::vector<ScopePtr> scopes = {std::make_shared<LineageScope>(), std::make_shared<LineageScope>(),
                                          std::make_shared<LineageScope>()};
    const auto shared = [&] {
      std::optional<Activation> committer;
      store.Transaction([&](TransactionUnderTest& transaction) {
        if (begun_outside) transaction.Write(keys[0], "v");
        for (const std::size_t number : {0U, 1U}) {
          const Activation current(scopes[number]);
          transaction.Write(keys[number + 1], "v");
        }
        for (const std::size_t number : {0U, 1U}) {
          Store::Check(scopes[number]->lineage().incomplete() == Only(store), "not marked");
        }
        committer.emplace(scopes[2]);
        store.Partition(store.near());
        return true;
      });
    };
    if (begun_outside) {
      shared();
    } else {
      const Activation current(scopes[0]);
      shared();
    }
    for (const ScopePtr& scope : scopes) {
      Store::Check(scope->pending().empty() && scope->lineage().IsComplete(), "marked");
      Store::Check(!scope->lineage().OfStore(store.name).empty(), "a scope has not got its write");
      Store::Check(!store.PassesBriefly(scope->lineage()), "a false pass");
    }
    store.Heal(store.near());
    for (const std::size_t number : {0U, 1U}) {
      Store::Check(store.Passes(scopes[number]->lineage()), "no pass");
      Store::Check(store.Shows(keys[number + 1], "v"), "a false pass");
    }
  }
}

// A transaction that only read is not pending, and leaves nothing (SCOPE-15).
void TransactionOnlyReadSoFar(Store& store) {
  const std::string key = Store::NewKey();
  store.Written(key);
  const Scope scope;
  SetOnPending(OnPending::kRaise);
  store.Transaction([&](TransactionUnderTest& transaction) {
    transaction.Read(key);
    Store::Check(Leaving().IsComplete(), "marked");
    return true;
  });
  Store::Check(Leaving().IsComplete(), "marked");
  Store::Check(scope.lineage().OfStore(store.name).empty(), "a read is recorded as a write");
}

// An aborted transaction leaves nothing (SCOPE-17, SHIM-11).
void RolledBackTransaction(Store& store) {
  const std::string key = Store::NewKey();
  const Scope scope;
  store.Transaction([&](TransactionUnderTest& transaction) {
    transaction.Write(key, "v");
    return false;
  });
  Store::Check(scope->pending().empty() && scope.lineage().empty() && scope.lineage().IsComplete(),
               "something is left of the write");
  Store::Check(!store.Look(key, store.primary()), "the transaction is not rolled back");
}

// A write whose answer never came stays pending: what leaves is marked for the scope's life (SCOPE-17).
void UnknownOutcome(Store& store) {
  const Scope scope;
  Store::Check(store.WriteWithUnknownOutcome(Store::NewKey(), "v"), "the client told of no error");
  Store::Check(scope->pending().size() == 1, "not pending");
  Store::Check(scope->lineage().incomplete() == Only(store), "not marked");
  Store::Check(Leaving().incomplete() == Only(store), "what leaves is not marked");
  store.Until(
      [&] {
        try {
          store.Write(Store::NewKey(), "v");
          return true;
        } catch (const std::exception&) {
          return false;
        }
      },
      "the store is usable again");
  Store::Check(scope->lineage().incomplete() == Only(store), "another write took the mark away");
}

// A write that the server refused did not happen, and is not pending (SCOPE-14).
void RefusedWrite(Store& store) {
  const Scope scope;
  Store::Check(store.WriteRefused(Store::NewKey()), "the client told of no error");
  Store::Check(scope->pending().empty(), "pending");
  Store::Check(scope->lineage().IsComplete(), "marked");
}

// A position that the store has not reached never passes, and the next write drops it (LIN-28).
void ImplausiblePosition(Store& store) {
  const std::vector<WriteId> mine = store.Written(Store::NewKey()).OfStore(store.name);
  Store::Check(mine.size() == 1 && mine.front().ordered() != nullptr, "no position");
  const WriteId forged = WriteId::Position(store.name, mine.front().ordered()->epoch, UINT64_MAX).value();
  Store::Check(!store.PassesBriefly(Lineage(forged)), "a false pass");
  const Scope scope = MessageScope(Lineage(forged).Serialize());
  const std::string key = Store::NewKey();
  store.Write(key, "v");
  Store::Check(!scope.lineage().Covers(forged), "the forged position is still there");
  Store::Check(scope.lineage().incomplete() == Only(store), "not marked");
  const std::vector<Gap> gaps = scope->gaps();
  Store::Check(gaps.size() == 1 && gaps.front().reason == "implausible", "no gap says why");
  Store::Check(store.Passes(scope.lineage()), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A version that no writer gave never passes, at an object that is there or one that is not.
void ImplausibleVersion(Store& store) {
  const auto never = [&](const Result<WriteId>& forged) {
    Store::Check(forged.ok() && !store.PassesBriefly(Lineage(*forged)), "a false pass");
  };
  const Lineage mine = store.Written(Store::NewKey());
  Store::Check(store.Passes(mine), "no pass");
  for (const WriteId& write_id : mine.OfStore(store.name)) {
    if (!write_id.is_position() && write_id.ordered() != nullptr) {
      never(WriteId::Make(store.name, write_id.key(), Ordered{write_id.ordered()->epoch, UINT64_MAX}));
    } else if (write_id.opaque() != nullptr) {
      never(WriteId::Make(store.name, write_id.key(), Opaque{"kit-unheard-of"}));
    }
    if (!write_id.is_position() && !store.capabilities().tap) {  // a message is known by its mark alone
      never(WriteId::Make(store.name, Store::NewKey(), write_id.version()));
    }
  }
  never(WriteId::Position(store.name, "kit-unheard-of", 1));
}

// Who comes with what cannot be read writes all the same, and stays incomplete (LIN-17).
void MalformedLineage(Store& store) {
  for (const std::string& text :
       {"1~" + store.name, std::string("2~some.thing.new.1"), "1~" + std::string(5000, 'x')}) {
    const Scope scope = MessageScope(text);
    store.Write(Store::NewKey(), "v");
    Store::Check(!scope.lineage().IsComplete(), "complete");
    const BarrierResult result = store.Judge(scope.lineage());
    Store::Check(result.satisfied() && !result.complete(), result.Explain());
  }
}

// Without a right that Antipode needs: an error at wrapping, or an incomplete lineage and a log line, with the grant
// (SHIM-3, EPOCH-5, EPOCH-26).
void MissingRights(Store& store) {
  const std::string key = Store::NewKey();
  const Scope scope;
  const Result<void> written = store.WriteWithoutRights(key, "v");
  Store::Check(!store.rights_cure.empty(), "rights_cure says nothing");
  if (!written.ok()) {
    Store::Check(written.error().code == ErrorCode::kUnfitStore, written.error().message);
    Store::Check(written.error().message.find(store.rights_cure) != std::string::npos, written.error().message);
    return;
  }
  Store::Check(store.Look(key, store.primary()) == "v", "the write itself is allowed");
  store.Until([&] { return LinesOfCase().find(store.rights_cure) != std::string::npos; }, "a log line holds the grant");
  const Lineage lineage = scope->lineage();
  Store::Check(!lineage.OfStore(store.name).empty() || lineage.incomplete() == Only(store), "lost, and looks complete");
}

// Where versions lie the shim refuses to wrap, and says what to change (SHIM-3, EPOCH-7).
void UnfitTopology(Store& store) {
  const Result<void> wrapped = store.WrapUnfit();
  Store::Check(!wrapped.ok(), "it is not refused");
  Store::Check(wrapped.error().code == ErrorCode::kUnfitStore, wrapped.error().message);
  Store::Check(!store.unfit_cure.empty(), "unfit_cure says nothing");
  Store::Check(wrapped.error().message.find(store.unfit_cure) != std::string::npos, wrapped.error().message);
}

}  // namespace

std::vector<Case> CasesOfWriters() {
  return {
      {"concurrent_writers", kAny, false, ConcurrentWriters},
      {"parallel_connections_of_one_scope", kAny, false, ParallelConnectionsOfOneScope},
      {"open_transaction", kAny, false, OpenTransaction},
      {"transaction_over_two_scopes", kAny, false, TransactionOverTwoScopes},
      {"transaction_only_read_so_far", kAny, false, TransactionOnlyReadSoFar},
      {"rolled_back_transaction", kAny, false, RolledBackTransaction},
      {"unknown_outcome", kAny, false, UnknownOutcome},
      {"refused_write", kAny, false, RefusedWrite},
      {"implausible_position", kPositions, false, ImplausiblePosition},
      {"implausible_version", kAny, false, ImplausibleVersion},
      {"malformed_lineage", kAny, false, MalformedLineage},
      {"missing_rights", kAny, false, MissingRights},
      {"unfit_topology", kAny, false, UnfitTopology},
  };
}

}  // namespace antipode::testing
