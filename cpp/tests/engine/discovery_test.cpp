// Which servers a barrier speaks of, where a function lists them, and that an address may come to lead elsewhere
// (BAR-52 to BAR-55).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "engine/discovery.h"
#include "engine/fakes.h"
#include "engine/log_test.h"
#include "environment.h"

namespace antipode::testing {
namespace {

class DiscoveryTest : public EngineTest {
 protected:
  // The store of one wrapped client and of a function that lists servers; the function's answer may change.
  void Register() {
    const auto type = ShimType::Of<FakeShim>("fake");
    const StoreOptions options = StoreOptions("s").ReplicasFrom([this]() -> Result<Targets> {
      ++asked_;
      std::this_thread::sleep_for(takes_.load());
      const std::lock_guard<std::mutex> lock(mutex_);
      if (fails_) return Error{ErrorCode::kConfiguration, "AP207", "the catalogue is down"};
      return Targets(listed_.begin(), listed_.end());
    });
    store_ = JoinStore(type, options).value();
    store_->UseServer(options, std::any(own_));
  }
  void List(std::vector<FakePtr> fakes, bool fails = false) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listed_ = std::move(fakes);
    fails_ = fails;
  }
  BarrierResult Judge() { return Barrier(Lineage(Object("s", "k")), Proceeding(2s)); }

  const FakePtr own_ = MakeFake("own", Always(Visibility::Visible()));
  const FakePtr one_ = MakeFake("one", Always(Visibility::Visible()));
  const FakePtr two_ = MakeFake("two", Always(Visibility::Visible()));
  std::atomic<int> asked_{0};
  std::atomic<std::chrono::milliseconds> takes_{0ms};
  std::mutex mutex_;
  std::vector<FakePtr> listed_;
  bool fails_ = false;
  std::shared_ptr<Store> store_;
};

// BAR-52, BAR-53: never by the wrapped client's own server.
TEST_F(DiscoveryTest, AnEmptyAnswerIsAFaultAndNotTheClientsOwnServer) {
  Register();
  BarrierResult result = Judge();
  EXPECT_FALSE(result.satisfied());
  EXPECT_EQ(result.store("s").verdict, Verdict::kUnproven);
  EXPECT_EQ(result.store("s").kind, UnprovenKind::kDiscovery) << result.Explain();
  EXPECT_NE(result.Explain().find("names no server"), std::string::npos) << result.Explain();
  EXPECT_EQ(own_->asked, 0);
  List({one_});
  Until([&] { return Judge().complete(); }, 60s);
  for (const bool fails : {false, true}) {
    List({}, fails);
    const int before = asked_;
    Until([&] { return Judge().complete() && asked_ > before; }, 60s);  // the last answer stands
  }
}

// BAR-67: a barrier waits for what discovery says now, and a fault of it leaves what it said.
TEST_F(DiscoveryTest, BehindIdleTimeABarrierWaitsForTheNextAnswer) {
  List({one_});
  Register();
  const Duration current = discovery::current.exchange(1s);
  for (const bool fails : {false, true}) {
    EXPECT_TRUE(Judge().satisfied());
    if (fails) {
      List({}, true);
    } else {
      List({two_});
    }
    std::this_thread::sleep_for(1100ms);
    takes_ = 300ms;
    const auto began = Clock::now();
    const BarrierResult result = Barrier(Lineage(Object("s", "k")), Proceeding(60s));
    EXPECT_TRUE(result.satisfied()) << result.Explain();
    EXPECT_LT(Clock::now() - began, 30s);
    const auto servers = result.store("s").servers;
    ASSERT_EQ(servers.size(), 2U) << result.Explain();
    EXPECT_EQ(servers.front().address, "two");
    EXPECT_TRUE(servers.back().left_out);
    takes_ = 0ms;
  }
  discovery::current.store(current);
}

// BAR-67: also where the answer grows too old while it waits for the write.
TEST_F(DiscoveryTest, ABarrierThatWaitedWaitsForTheNextAnswer) {
  List({one_});
  one_->Set(Always(Visibility::NotYet()));
  Register();
  const Duration current = discovery::current.exchange(1s);
  auto waiting = std::async(std::launch::async, [] { return Barrier(Lineage(Object("s", "k")), Proceeding(60s)); });
  std::this_thread::sleep_for(1300ms);
  one_->Set(Always(Visibility::Visible()));
  const BarrierResult result = waiting.get();
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  discovery::current.store(current);
}

// BAR-22: every so often, however long the function takes.
TEST_F(DiscoveryTest, TheFunctionIsAskedAtItsPeriod) {
  const auto asked = std::make_shared<std::atomic<int>>(0);  // the thread that asks ends behind the test
  const auto list = [asked, one = one_]() -> Result<Targets> {
    if ((*asked)++ > 0) std::this_thread::sleep_for(1s);
    return Targets{one};
  };
  store_ = JoinStore(ShimType::Of<FakeShim>("fake"), StoreOptions("s").ReplicasFrom(list)).value();
  const Duration refresh = discovery::refresh.exchange(1200ms);
  Duration shortest = Duration::max();
  TimePoint last;
  for (int count = 0; count < 4; ++count) {
    const int before = *asked;
    Until([&] { return !store_->Servers().empty() && *asked > before; }, 60s);
    if (count > 0) shortest = std::min<Duration>(shortest, Clock::now() - last);
    last = Clock::now();
  }
  EXPECT_LT(shortest, 2s);
  discovery::refresh.store(refresh);
}

// BAR-65: of two answers the one that was asked for later.
TEST_F(DiscoveryTest, AnOlderAnswerThatComesLaterIsNotTaken) {
  struct Late {  // the thread that asks ends behind the test
    FakePtr one, two;
    std::weak_ptr<Store> store;
    std::atomic<int> asked{0};
    std::promise<void> goes_on;
    std::promise<std::vector<std::string>> named;
  };
  const auto late = std::make_shared<Late>();
  late->one = one_;
  late->two = two_;
  const auto list = [late]() -> Result<Targets> {
    const int number = late->asked++;
    if (number == 1) late->goes_on.get_future().wait();
    if (number == 3) late->named.set_value(late->store.lock()->replicas());  // the late answer has come
    return Targets{number < 2 ? late->one : late->two};
  };
  const auto type = ShimType::Of<FakeShim>("fake");
  late->store = store_ = JoinStore(type, StoreOptions("s").ReplicasFrom(list)).value();
  const Duration refresh = discovery::refresh.exchange(Duration::zero());
  Until([&] { return !store_->Servers().empty() && late->asked == 2; }, 60s);
  JoinStore(type, StoreOptions("s").ReplicasFrom([two = two_]() -> Result<Targets> { return Targets{two}; })).value();
  EXPECT_EQ(store_->replicas(), (std::vector<std::string>{"two"}));
  late->goes_on.set_value();
  Until([&] { return !store_->Servers().empty() && late->asked == 4; }, 60s);
  EXPECT_EQ(late->named.get_future().get(), std::vector<std::string>{"two"});
  discovery::refresh.store(refresh);
}

// BAR-53: whatever the function throws.
TEST_F(DiscoveryTest, WhatIsThrownIsAFault) {
  const auto type = ShimType::Of<FakeShim>("fake");
  const auto joined = JoinStore(type, StoreOptions("s").ReplicasFrom([]() -> Result<Targets> { throw 1; }));
  EXPECT_FALSE(joined.ok());
}

// BAR-53.
TEST_F(DiscoveryTest, AnEmptyListInCodeIsAMistake) {
  const auto joined = JoinStore(ShimType::Of<FakeShim>("fake"), StoreOptions("s").ReplicaTargets({}));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kConfiguration);
  EXPECT_FALSE(FindStore("s").ok());
}

// BAR-22: its server is in nobody's list, and would be read unjudged.
TEST_F(DiscoveryTest, AWrapWithoutReplicasAddsItsOwnServerToTheListOfAnother) {
  const auto type = ShimType::Of<FakeShim>("fake");
  const auto addresses = [&] { return store_->replicas(); };
  const StoreOptions listing = StoreOptions("s").ReplicaTargets({std::any(one_)});
  store_ = JoinStore(type, listing).value();
  store_->UseServer(listing, std::any(two_));  // it only writes there, and says whom readers use
  EXPECT_EQ(addresses(), std::vector<std::string>{"one"});
  own_->Set(Always(Visibility::NotYet()));
  EXPECT_TRUE(Judge().complete());
  JoinStore(type, StoreOptions("s")).value()->UseServer(StoreOptions("s"), std::any(own_));
  EXPECT_EQ(addresses(), (std::vector<std::string>{"one", "own"}));
  EXPECT_FALSE(Barrier(Lineage(Object("s", "k")), Proceeding(50ms)).satisfied());
  JoinStore(type, StoreOptions("s")).value()->UseServer(StoreOptions("s"), std::any(two_));
  EXPECT_EQ(addresses(), (std::vector<std::string>{"one", "own", "two"}));
}

// BAR-22: the list of a setting is one of each wrap.
TEST_F(DiscoveryTest, AListOfTheSettingsCountsForEachWrap) {
  const auto type = ShimType::Of<FakeShim>("fake");
  store_ = JoinStore(type, StoreOptions("s").ReplicaTargets({std::any(two_)})).value();
  const Isolation isolation(Variables{{"ANTIPODE_STORE_S_REPLICAS", "one"}});
  store_->UseServer(StoreOptions("s"), std::any(own_));
  EXPECT_EQ(store_->replicas(), std::vector<std::string>{"two"});
}

// BAR-54.
TEST_F(DiscoveryTest, AServerThatIsTakenAwayIsNamedForAWhile) {
  List({one_, two_});
  Register();
  EXPECT_TRUE(Judge().complete());
  List({one_});
  Until([&] { return !Judge().complete(); }, 60s);
  const BarrierResult result = Judge();
  EXPECT_TRUE(result.satisfied());
  EXPECT_EQ(result.store("s").LeftOut(), std::vector<std::string>{"two"});
  SettingWords words;
  words.on_replica_out = OnReplicaOut::kFail;
  Set(words);
  EXPECT_FALSE(Judge().satisfied());
  words.on_replica_out = OnReplicaOut::kName;
  words.left_server = 0ms;
  Set(words);
  EXPECT_TRUE(Judge().complete());
}

// BAR-54: also where a wrapped client's own server is taken away; a server that is judged is not left out.
TEST_F(DiscoveryTest, AWrappedClientsOwnServerThatIsTakenAwayIsNamedUnlessItIsJudged) {
  List({one_, own_});
  Register();
  EXPECT_TRUE(Judge().complete());
  List({one_});
  Until([&] { return !Judge().complete(); }, 60s);
  EXPECT_EQ(Judge().store("s").LeftOut(), std::vector<std::string>{"own"});
  EXPECT_TRUE(Barrier(Lineage(Object("s", "k")), Proceeding(2s).Reach(Reach::kReplica)).complete())
      << "its own is judged";
  store_->UseServer(StoreOptions("s"), std::any(own_));
  EXPECT_TRUE(Judge().complete());
}

// BAR-55: while barriers come our connection is made anew, and what it then shows counts.
TEST_F(LogTest, AnAddressThatComesToLeadElsewhereIsFound) {
  class Connected final : public LogShim {
   public:
    Answers Visible(Span<const WriteId> ids, Server& server) override {
      auto* const log = std::any_cast<std::shared_ptr<FakeLog>>(&server.session);
      if (log == nullptr) server.session = Lead();
      return (*std::any_cast<std::shared_ptr<FakeLog>>(&server.session))->Judge(ids, server);
    }
    void Close(Server& server) noexcept override { server.session.reset(); }
    // Where the address leads; from now on there, where it is given.
    static std::shared_ptr<FakeLog> Lead(const std::shared_ptr<FakeLog>& to = nullptr) {
      static std::mutex mutex;
      static std::shared_ptr<FakeLog> where;
      const std::lock_guard<std::mutex> lock(mutex);
      if (to != nullptr) where = to;
      return where;
    }
  };
  SettingWords words;
  words.reconnect = 100ms;
  Set(words);
  Connected::Lead(log_);
  log_->Move(5);
  MakeFakeStore<Connected>("moved", {MakeFake("endpoint", Down())});
  const Lineage lineage(At("moved", "e1", 5));
  EXPECT_TRUE(Barrier(lineage, Proceeding(20s)).complete());
  const auto behind = std::make_shared<FakeLog>();
  behind->instance = "i2";
  Connected::Lead(behind);
  Until([&] { return !Barrier(lineage, Proceeding(20ms)).satisfied(); });
  EXPECT_FALSE(Barrier(lineage, Proceeding(20ms)).satisfied());
  behind->Move(5);
  Until([&] { return Barrier(lineage, Proceeding(200ms)).complete(); });
}

}  // namespace
}  // namespace antipode::testing
