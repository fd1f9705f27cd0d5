// Cases about which servers a pass speaks of, where somebody else has to say so (spec BAR-22, BAR-52 to BAR-55).
#include <mutex>

#include "antipode/store.h"
#include "engine/discovery.h"
#include "store/store_impl.h"
#include "testing/cases.h"
#include "testing/relay.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

std::shared_ptr<::antipode::Store> RegisteredParts(const Store& store) { return FindStore(store.name).value(); }

BarrierResult JudgeSoon(const Store& store, const Lineage& lineage) {
  return store.Judge(lineage, std::chrono::seconds(1));
}

// What names the region's servers is a function, which is asked at every barrier.
class NamedServers {
 public:
  explicit NamedServers(const Store& store) {
    const auto found = RegisteredParts(store);
    for (const auto& server : found->Servers()) targets_.push_back(server->target());
    discovery::refresh.store(Duration::zero());
    discovery::retry.store(Duration::zero());
    Store::Check(found->impl().ListBy([this]() -> Result<Targets> {
      const std::lock_guard<std::mutex> lock(mutex_);
      return targets_;
    }).ok(), "the function is refused");
    registered_ = found;
  }
  NamedServers(const NamedServers&) = delete;
  NamedServers& operator=(const NamedServers&) = delete;
  ~NamedServers() {
    discovery::refresh.store(refresh_);
    discovery::retry.store(retry_);
    discovery::stands.store(stands_);
    // Nobody calls back here any more.
    static_cast<void>(registered_->impl().ListBy([all = all()]() -> Result<Targets> { return all; }));
  }

  Targets all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return targets_;
  }
  void Name(Targets targets) {
    const std::lock_guard<std::mutex> lock(mutex_);
    targets_ = std::move(targets);
  }

 private:
  const Duration refresh_ = discovery::refresh.load();
  const Duration retry_ = discovery::retry.load();
  const Duration stands_ = discovery::stands.load();
  mutable std::mutex mutex_;
  Targets targets_;
  std::shared_ptr<::antipode::Store> registered_;
};

// The server of a wrapped client that has not connected yet is waited for like the others (BAR-52).
void ClientBeforeItsFirstUse(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage lineage = store.Written(key);
  const OtherRegistry other;
  for (const std::string& server : {store.primary(), store.near()}) {
    if (!store.WrapUnused(server)) throw CaseSkipped("its clients connect when they are made");
  }
  Store::Check(!store.PassesBriefly(lineage), "a false pass");
  store.Heal(store.near());
  const BarrierResult result = store.Judge(lineage);
  Store::Check(result.complete() && result.store(store.name).servers.size() == 2, result.Explain());
  Store::Check(store.Shows(key, "v", {store.near()}), "a false pass");
}

// The last answer stands for a while; then nothing is proved, least of all by the primary alone (BAR-53).
void EmptyDiscovery(Store& store) {
  NamedServers named(store);
  const Targets all = named.all();
  store.Until([&] { return store.Judge(store.Written(Store::NewKey())).complete(); },
              "the servers that are named are judged");
  named.Name({});
  store.Partition(store.near());
  const Lineage lineage = store.Written(Store::NewKey());
  Store::Check(!store.PassesBriefly(lineage), "a false pass");
  discovery::stands.store(Duration::zero());
  const StoreResult late = store.Judge(lineage, store.brief).store(store.name);
  Store::Check(late.verdict == Verdict::kUnproven && late.kind == UnprovenKind::kDiscovery, late.reason);
  discovery::stands.store(std::chrono::seconds(30));
  named.Name(all);
  store.Heal(store.near());
  store.Until([&] { return JudgeSoon(store, lineage).complete(); }, "they are named again");
}

// It is named as left out, and no pass is complete, for as long as a connection may lead there (BAR-54).
void ServerTakenAway(Store& store) {
  NamedServers named(store);
  Targets all = named.all();
  if (all.size() < 2) throw CaseSkipped("one server is all that it has");
  const std::string gone = RegisteredParts(store)->shim().Address(all.back());
  const Lineage lineage = store.Written(Store::NewKey());
  store.Until([&] { return store.Judge(lineage).complete(); }, "the servers that are named are judged");
  all.pop_back();
  named.Name(all);
  const auto left = [&] { return store.Judge(lineage).store(store.name).LeftOut(); };
  store.Until([&] { return left() == std::vector<std::string>{gone}; }, "it is named as left out");
  const BarrierResult result = store.Judge(lineage);
  Store::Check(result.satisfied() && !result.complete(), result.Explain());
  SettingWords words;
  words.left_server = Duration::zero();
  Store::Check(Configure(words).ok(), "configure");
  store.Until([&] { return store.Judge(lineage).complete(); }, "no connection leads there any more");
}

// A client that is wrapped without replicas is judged also where another wrap has a list (BAR-22).
void ReaderInNobodysList(Store& store) {
  for (const bool listed_first : {true, false}) {
    store.Partition(store.far());
    const std::string key = Store::NewKey();
    const Lineage lineage = store.Written(key);
    store.Until([&] { return store.Shows(key, "v", {store.near()}); }, "the write reaches the near replica");
    const OtherRegistry other;
    std::vector<std::unique_ptr<ClientUnderTest>> clients;
    const auto wrap_listed = [&] {
      clients.push_back(store.WrapClient(store.near(), std::vector<std::string>{store.near()}, false));
    };
    if (listed_first) wrap_listed();
    clients.push_back(store.WrapClient(store.far(), std::nullopt, false));
    if (!listed_first) wrap_listed();
    Store::Check(!store.PassesBriefly(lineage), "a false pass");
    store.Heal(store.far());
    const BarrierResult result = store.Judge(lineage);
    Store::Check(result.complete() && result.store(store.name).servers.size() == 2, result.Explain());
    Store::Check(store.Shows(key, "v"), "a false pass");
  }
}

// Where an address comes to lead to a server that is behind, the one before proves nothing any more (BAR-55).
void AddressThatMoves(Store& store) {
  if (store.capabilities().tap) throw CaseSkipped("what its connection has seen is not seen again: it is not given up");
  SettingWords words;
  words.reconnect = std::chrono::milliseconds(300);
  Store::Check(Configure(words).ok(), "configure");
  const int elsewhere = store.PortOf(store.far());
  Relay relay(store.PortOf(store.near()));
  const OtherRegistry other;
  store.RegisterAt(store.near(), relay.port());
  store.Until([&] { return JudgeSoon(store, store.Written(Store::NewKey())).complete(); }, "the address is judged");
  store.Partition(store.far());
  relay.Lead(elsewhere);
  store.Until([&] { return !store.PassesBriefly(store.Written(Store::NewKey())); },
              "it is asked where the address leads now");
  std::string key;
  Lineage lineage;
  for (int time = 0; time < 5; ++time) {
    key = Store::NewKey();
    lineage = store.Written(key);
    Store::Check(!store.PassesBriefly(lineage), "a false pass");
  }
  Store::Check(!store.Look(key, store.far()), "the partition does not part");
  store.Heal(store.far());
  store.Until([&] { return JudgeSoon(store, lineage).complete(); }, "the server behind the address has caught up");
  Store::Check(store.Shows(key, "v", {store.far()}), "a false pass");
}

}  // namespace

std::vector<Case> CasesOfServers() {
  return {
      {"client_before_its_first_use", kAny, false, ClientBeforeItsFirstUse},
      {"empty_discovery", kAny, false, EmptyDiscovery},
      {"server_taken_away", kAny, false, ServerTakenAway},
      {"reader_in_nobodys_list", kNoQueues, false, ReaderInNobodysList},
      {"address_that_moves", kAny, false, AddressThatMoves},
  };
}

}  // namespace antipode::testing
