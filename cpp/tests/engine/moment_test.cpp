// A pass is a picture of one moment: what a server showed, and may have lost while others were waited for (BAR-63).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "antipode/scope.h"
#include "engine/free_path.h"
#include "engine/log_test.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

// A server that can lose what it had: pointed at another primary, say.
struct Replica {
  explicit Replica(std::string its_name, std::uint64_t its_applied, bool its_positions = true, Duration its_slow = 0ms)
      : name(std::move(its_name)), positions(its_positions), slow(its_slow), applied(its_applied) {}

  Answers Judge(Span<const WriteId> ids, Server& server) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      asked_at.push_back(Clock::now());
    }
    const std::uint64_t now = applied;
    std::this_thread::sleep_for(slow);
    if (loads) return std::vector(ids.size(), Visibility::NotYet("it is loading"));
    if (positions) server.Applied("i-" + name, "e1", {{"e1", now}});
    return std::vector(ids.size(), now >= 5 ? Visibility::Visible() : Visibility::NotYet("behind"));
  }

  std::vector<TimePoint> Asked() {
    const std::lock_guard<std::mutex> lock(mutex);
    return asked_at;
  }
  std::size_t Times() { return Asked().size(); }

  const std::string name;
  const bool positions;
  const Duration slow;
  std::atomic<std::uint64_t> applied;
  std::atomic<bool> loads{false};

 private:
  std::mutex mutex;
  std::vector<TimePoint> asked_at;
};

using ReplicaPtr = std::shared_ptr<Replica>;

FakePtr FakeOf(const ReplicaPtr& replica) {
  return MakeFake(replica->name,
                  [replica](Span<const WriteId> ids, Server& server) { return replica->Judge(ids, server); });
}

// A channel that says nothing.
class QuietChannel final : public Watch {};

class QuietPushShim final : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions().Push(true); }
  Result<std::unique_ptr<Watch>> OpenWatch(Server&, std::function<void()>) override {
    return std::unique_ptr<Watch>(std::make_unique<QuietChannel>());
  }
};

class MomentTest : public EngineTest {
 protected:
  MomentTest() { words_.poll = 5ms; }

  // One server that has the write, and one that has not.
  void StartTwo(std::optional<Duration> ttl = std::nullopt, bool positions = true, Duration slow = 0ms) {
    there_ = std::make_shared<Replica>("there", 5, positions, slow);
    late_ = std::make_shared<Replica>("late", 0, positions, slow);
    Start({there_, late_}, ttl);
    wanted_ = Lineage(positions ? At("log", "e1", 5) : Object("log", "k", 5));
  }

  void Start(const std::vector<ReplicaPtr>& replicas, std::optional<Duration> ttl = std::nullopt) {
    words_.free_path_ttl = ttl;
    Set(words_);
    std::vector<FakePtr> fakes;
    for (const ReplicaPtr& each : replicas) fakes.push_back(FakeOf(each));
    store_ = replicas.front()->positions ? MakeFakeStore<LogShim>("log", fakes) : MakeFakeStore("log", fakes);
  }

  Server& Of(const ReplicaPtr& replica) const {
    for (const auto& server : store_->Servers()) {
      if (server->address() == replica->name) return *server;
    }
    std::abort();
  }

  bool Passes(Duration timeout = 60s) { return Barrier(wanted_, Proceeding(timeout)).satisfied(); }

  void UntilBothWereAsked() {
    Until([&] { return there_->Times() > 0 && late_->Times() > 0; }, 60s);
    Until([&] { return Shown(); }, 60s);
  }

  bool Proved() const { return Of(there_).impl().ProofOf("e1", 5).has_value(); }

  // What the first one showed is settled: its answer came back.
  bool Shown() const { return Of(there_).impl().Waiting() == 0; }

  SettingWords words_;
  ReplicaPtr there_;
  ReplicaPtr late_;
  std::shared_ptr<Store> store_;
  Lineage wanted_{At("log", "e1", 5)};
};

// The server has shown it, is pointed elsewhere, and says so by its push.
TEST_F(MomentTest, WhatWasPushedAwayWhileAnotherServerWasWaitedForIsNoPass_BAR_63) {
  StartTwo();
  auto waiting = BarrierAsync(wanted_, Proceeding(2s));
  UntilBothWereAsked();
  there_->applied = 0;
  Of(there_).Reset();
  late_->applied = 5;
  EXPECT_FALSE(waiting.get().satisfied());
  there_->applied = 5;
  EXPECT_TRUE(Passes());
}

// The same where its answer says that it is another one now.
TEST_F(MomentTest, WhatAnotherInstanceHasNotIsNoPass_BAR_33) {
  StartTwo(60s);
  auto waiting = BarrierAsync(wanted_, Proceeding(2s));
  UntilBothWereAsked();
  there_->applied = 4;
  Until([&] { return !Barrier(Lineage(At("log", "e1", 6)), Proceeding(100ms)).satisfied() && !Proved(); }, 60s);
  late_->applied = 5;
  EXPECT_FALSE(waiting.get().satisfied());
  there_->applied = 5;
  EXPECT_TRUE(Passes());
}

class MomentOf : public MomentTest, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Each, MomentOf, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Positions" : "Objects"; });

// Nobody pushes; the age of the proof is what has it asked for again.
TEST_P(MomentOf, WhatWasLostInSilenceIsNoPassOnceItsProofIsOld_BAR_63) {
  StartTwo(50ms, GetParam());
  auto waiting = BarrierAsync(wanted_, Proceeding(3s));
  UntilBothWereAsked();
  there_->applied = 0;
  const TimePoint shown_at = there_->Asked().back();
  Until([&] { return Clock::now() > shown_at + 100ms; });
  late_->applied = 5;
  const BarrierResult result = waiting.get();
  EXPECT_FALSE(result.satisfied());
  for (const ServerResult& server : result.store("log").servers) {
    if (server.address == "there") {
      EXPECT_EQ(server.verdict, Verdict::kTimedOut);
    }
  }
  there_->applied = 5;
  EXPECT_TRUE(Passes());
}

// It was asked for again, and gone: when it is back that is another moment, at which the other one may be gone.
TEST_P(MomentOf, WhatWasGoneWhenItWasAskedForAgainIsOfAnotherMoment_BAR_63) {
  StartTwo(50ms, GetParam());
  auto waiting = BarrierAsync(wanted_, Proceeding(3s));
  UntilBothWereAsked();
  there_->loads = true;  // so that it is the same history when it is back
  const TimePoint shown_at = there_->Asked().back();
  Until([&] { return Clock::now() > shown_at + 100ms; });
  late_->applied = 5;
  Until([&] { return Of(late_).impl().Waiting() == 0 && Of(there_).impl().Waiting() == 1; }, 60s);
  const std::size_t asked = there_->Times();
  Until([&] { return there_->Times() >= asked + 3; }, 60s);
  late_->applied = 0;
  const TimePoint lost_at = Clock::now();
  Until([&] { return Clock::now() > lost_at + 100ms; });
  there_->loads = false;
  EXPECT_FALSE(waiting.get().satisfied());
}

// Ages count from the moment, else every proof would be too old when it arrives.
TEST_P(MomentOf, OneMoreRoundIsEnoughHoweverSlowTheLink_BAR_63) {
  for (const Duration ttl : {Duration(0ms), Duration(10ms)}) {
    const Isolated isolated;
    StartTwo(ttl, GetParam(), 100ms);
    auto waiting = BarrierAsync(wanted_, Proceeding(30s));
    Until([&] { return late_->Times() >= 2; }, 60s);
    late_->applied = 5;
    const TimePoint shown_at = Clock::now();
    EXPECT_TRUE(waiting.get().satisfied());
    const auto times = [shown_at](const std::vector<TimePoint>& asked) {
      return std::count_if(asked.begin(), asked.end(), [shown_at](TimePoint at) { return at > shown_at; });
    };
    EXPECT_LE(times(there_->Asked()), 3) << "one under way, one more, and the engine's own";
    EXPECT_LE(times(late_->Asked()), 1) << "its question is the moment";
  }
}

// A connection lives for several questions, else each would be of another generation (BAR-55).
TEST_F(MomentTest, ServersStandTogetherHoweverOftenTheyAreConnectedAnew_BAR_63) {
  words_.reconnect = 100ms;
  StartTwo(0ms, true, 150ms);
  late_->applied = 5;
  BarrierOptions options = Proceeding(20s);
  options.RequireComplete(true);
  EXPECT_TRUE(BarrierAsync(wanted_, options).get().satisfied());
}

// And its threads are not begun anew for a barrier that cannot pass any more.
TEST_F(MomentTest, WhoIsToldOfAShutdownAsksForNothingAgain_BAR_63) {
  StartTwo();
  const auto servers = store_->Servers();
  auto waiting = BarrierAsync(wanted_, Proceeding(60s));
  UntilBothWereAsked();
  store_->impl().Retire();
  EXPECT_FALSE(waiting.get().satisfied());
  for (const auto& server : servers) EXPECT_FALSE(server->impl().Asking()) << server->address();
}

// Its own answer is the moment.
TEST_F(MomentTest, AServerAloneIsAskedOnce_BAR_63) {
  const auto alone = std::make_shared<Replica>("alone", 5);
  Start({alone}, 0ms);
  EXPECT_TRUE(Passes());
  EXPECT_EQ(alone->Times(), 1U);
}

// What was long on its way may be gone when it arrives.
TEST_F(MomentTest, AnAnswerIsAsOldAsItsQuestion_BAR_34) {
  const auto slow = std::make_shared<Replica>("slow", 5, true, 300ms);
  Start({slow}, 500ms);
  EXPECT_TRUE(Passes());
  const TimePoint asked_at = slow->Asked().front();
  const auto proof = Of(slow).impl().ProofOf("e1", 5);
  ASSERT_TRUE(proof);
  EXPECT_TRUE(Of(slow).impl().StillHolds(*proof, asked_at + 490ms, 500ms));
  EXPECT_FALSE(Of(slow).impl().StillHolds(*proof, asked_at + 520ms, 500ms));
}

// Each server shows it once more behind the last of them.
TEST_F(MomentTest, CompleteAndRegionWantsOneInstantWithinTheCall_BAR_64) {
  StartTwo(60s);
  auto waiting = BarrierAsync(wanted_, Proceeding(60s).RequireComplete());
  UntilBothWereAsked();
  late_->applied = 5;
  EXPECT_TRUE(waiting.get().satisfied());
  const auto last = late_->Asked();
  ASSERT_GE(last.size(), 2U);
  EXPECT_GT(there_->Asked().back(), last[last.size() - 2]);
  const std::size_t both = there_->Times();
  const std::size_t again = late_->Times();
  EXPECT_TRUE(Passes());
  EXPECT_EQ(there_->Times(), both) << "without it, the proofs are fresh enough";
  EXPECT_EQ(late_->Times(), again);
  EXPECT_TRUE(Barrier(wanted_, Proceeding(60s).RequireComplete()).satisfied());
  EXPECT_GT(there_->Times(), both);
  EXPECT_GT(late_->Times(), again);
}

TEST_F(MomentTest, ALookDoesTheSame_BAR_29) {
  StartTwo(0ms);
  late_->applied = 5;
  Until([&] { return Passes(0ms); }, 60s);  // a look has a tenth of a second, on a loaded machine
  there_->applied = 0;
  EXPECT_FALSE(Passes(0ms));
}

TEST_F(MomentTest, CallbacksAreReleasedByTheSameRule_BAR_32) {
  StartTwo();
  std::vector<std::future<BarrierResult>> waiting;
  for (int n = 0; n < 20; ++n) waiting.push_back(BarrierAsync(wanted_, Proceeding(2s)));
  UntilBothWereAsked();
  there_->applied = 0;
  Of(there_).Reset();
  late_->applied = 5;
  for (auto& each : waiting) EXPECT_FALSE(each.get().satisfied());
  EXPECT_EQ(store_->impl().parked(), 0);
}

// The server is loading other data, and has shown the write before.
TEST_F(MomentTest, AnAnswerThatProvesNoPositionIsNoneOfAnEarlierOne_BAR_63) {
  StartTwo(0ms);
  auto waiting = BarrierAsync(wanted_, Proceeding(500ms));
  UntilBothWereAsked();
  there_->loads = true;
  late_->applied = 5;
  EXPECT_FALSE(waiting.get().satisfied());
  there_->loads = false;
  EXPECT_TRUE(Passes());
}

// The proof that is kept is of the servers of the end: one joined when the other one had been asked.
TEST_F(MomentTest, TheProofThatIsKeptIsOfTheServersOfTheEnd_BAR_35_BAR_65) {
  words_.free_path_ttl = 60s;
  Set(words_);
  const auto there = std::make_shared<Replica>("there", 5);
  const auto late = std::make_shared<Replica>("late", 0);
  std::atomic<bool> joined{false};
  const FakePtr first = MakeFake("there", [&](Span<const WriteId> ids, Server& server) {
    if (!joined.exchange(true)) {
      StoreOptions more("log");
      more.ReplicaTargets({FakeOf(late)});
      EXPECT_TRUE(JoinStore(ShimType::Of<LogShim>("fake"), more).ok());
    }
    return there->Judge(ids, server);
  });
  store_ = MakeFakeStore<LogShim>("log", {first});
  const Scope scope(wanted_);
  EXPECT_FALSE(Barrier(Proceeding(200ms)).satisfied());
  late->applied = 5;
  EXPECT_TRUE(Barrier(Proceeding(60s)).satisfied());
  const auto is_free = [&] { return FreePass(*CurrentScope(), Proceeding(60s)).has_value(); };
  EXPECT_TRUE(is_free());
  Of(late).Reset();
  EXPECT_FALSE(is_free());
  store_->impl().Retire();  // its thread calls what stands here
}

// Two such proofs might never have stood at one moment.
TEST_F(MomentTest, AProofThatWasDroppedAndMadeAnewIsNoneThatIsKept_BAR_35_BAR_63) {
  StartTwo(60s);
  late_->applied = 5;
  const Scope scope(wanted_);
  const auto is_free = [&] { return FreePass(*scope.shared(), Proceeding(60s)).has_value(); };
  ASSERT_TRUE(Barrier(Proceeding(60s)).satisfied());
  ASSERT_TRUE(is_free());
  Of(late_).Reset();
  std::thread([&] { EXPECT_TRUE(Passes()); }).join();  // outside the scope
  EXPECT_FALSE(is_free());
}

// What passed without a store is no pass where that one counts.
TEST_F(MomentTest, AStoreThatIsJoinedByAnotherModeIsJudgedAnew_BAR_35) {
  StartTwo(60s);
  late_->applied = 5;
  const auto join = [](Mode mode) {
    EXPECT_TRUE(JoinStore(ShimType::Of<LogShim>("fake"), StoreOptions("off").InMode(mode)).ok());
  };
  join(Mode::kOff);
  const Scope scope(Lineage(std::vector<WriteId>{At("log", "e1", 5), At("off", "e1", 5)}));
  const auto is_free = [&] { return FreePass(*scope.shared(), Proceeding(60s)).has_value(); };
  ASSERT_TRUE(Barrier(Proceeding(60s)).satisfied());
  ASSERT_TRUE(is_free());
  join(Mode::kEnforce);
  EXPECT_FALSE(is_free());
}

// What would only have had to be shown once more is no late write.
TEST_F(MomentTest, APlaceThatIsRefusedSaysSoAndNothingElse_BAR_39) {
  words_.max_waiters = 1;
  StartTwo(60s);
  const auto other = MakeFakeStore<LogShim>(
      "other", {FakeOf(std::make_shared<Replica>("one", 5)), FakeOf(std::make_shared<Replica>("two", 5))});
  const Lineage both(std::vector<WriteId>{At("other", "e1", 5), At("log", "e1", 5)});
  EXPECT_TRUE(Barrier(Lineage(At("other", "e1", 5)), Proceeding(60s)).satisfied());
  std::thread waiting([&] { EXPECT_TRUE(Passes()); });
  Until([&] { return store_->impl().parked() == 1; }, 60s);
  const BarrierResult refused = Barrier(both, Proceeding(30s).RequireComplete());
  EXPECT_FALSE(refused.satisfied());
  EXPECT_NE(refused.Explain().find("overloaded"), std::string::npos) << refused.Explain();
  EXPECT_EQ(refused.Explain().find("gone again"), std::string::npos) << refused.Explain();
  late_->applied = 5;
  waiting.join();
}

// It answers without a position, as one does that loads its data.
TEST_F(MomentTest, AServerThatProvesNothingIsAskedForASignOfLifeInItsTime_BAR_38) {
  words_.free_path_ttl = 250ms;
  Set(words_);
  const auto there = std::make_shared<Replica>("there", 5);
  store_ = MakeFakeStore<QuietPushShim>("log", {FakeOf(there)});
  EXPECT_TRUE(Passes());
  there->loads = true;
  std::size_t asked = there->Times();
  Until([&] { return there->Times() > asked; }, 60s);
  asked = there->Times();
  const TimePoint began = Clock::now();
  std::this_thread::sleep_for(1s);
  const auto times = static_cast<double>(there->Times() - asked);
  EXPECT_LE(times / Seconds(Clock::now() - began), 100) << "8 a second are wanted";
}

// Nor in a loop where there is no free path, which they would keep open.
TEST_F(MomentTest, WithoutAFreePathNobodyAsksForSignsOfLife_BAR_34) {
  words_.free_path_ttl = 0ms;
  Set(words_);
  const auto there = std::make_shared<Replica>("there", 5);
  store_ = MakeFakeStore<QuietPushShim>("log", {FakeOf(there)});
  EXPECT_TRUE(Passes());
  const std::size_t asked = there->Times();
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(there->Times() - asked, 2U);
}

}  // namespace
}  // namespace antipode::testing
