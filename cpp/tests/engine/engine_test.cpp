// The wait engine: single flight, push, back-off, overload, the free path, ended and unknown epochs.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <future>
#include <set>

#include "antipode/scope.h"
#include "engine/fakes.h"
#include "engine/measures.h"
#include "engine/waiters.h"

namespace antipode::testing {
namespace {

// Positions; the server says how far it is.
class LogShim : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions(); }
};

struct FakeLog {
  std::mutex mutex;
  std::string instance = "i1";
  std::string epoch = "e1";
  std::uint64_t applied = 0;

  void Move(std::uint64_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    applied = to;
  }
  void Become(std::string new_instance, std::string new_epoch, std::uint64_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    instance = std::move(new_instance);
    epoch = std::move(new_epoch);
    applied = to;
  }
  Answers Judge(Span<const WriteId> ids, Server& server) {
    const std::lock_guard<std::mutex> lock(mutex);
    server.Applied(instance, epoch, {{epoch, applied}});
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      if (id.ordered()->epoch != epoch) {
        answers.push_back(Visibility::UnknownEpoch("unknown"));
      } else if (id.ordered()->counter <= applied) {
        answers.push_back(Visibility::Visible());
      } else {
        answers.push_back(Visibility::NotYet("at " + std::to_string(applied)));
      }
    }
    return answers;
  }
};

class LogTest : public EngineTest {
 protected:
  LogTest() {
    fake_ = MakeFake("log-1", [log = log_](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); });
    store_ = MakeFakeStore<LogShim>("log", {fake_});
    server_ = store_->Servers().front();
  }

  static Lineage Upto(std::uint64_t counter, const std::string& epoch = "e1") { return Lineage(At("log", epoch, counter)); }

  const std::shared_ptr<FakeLog> log_ = std::make_shared<FakeLog>();
  FakePtr fake_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Server> server_;
};

// BAR-38: at most 25 questions a second to a silent server.
TEST_F(LogTest, OnePollerHoweverManyBarriersWait) {
  std::vector<std::future<BarrierResult>> waits;
  for (std::uint64_t n = 1; n <= 100; ++n) waits.push_back(BarrierAsync(Upto(n), Proceeding(30s)));
  Until([&] { return store_->parked() == 100; });
  Until([&] { return fake_->asked >= 8; });  // past the first, quick polls: what is measured is the steady state
  const int before = fake_->asked;
  const TimePoint began = Clock::now();
  Until([&] { return fake_->asked >= before + 10; });
  EXPECT_LE(10 / Seconds(Clock::now() - began), 25.0);
  log_->Move(100);
  for (auto& wait : waits) EXPECT_TRUE(wait.get().satisfied());
  EXPECT_EQ(store_->parked(), 0);
}

// BAR-41.
TEST_F(LogTest, AReleaseWakesOnlyThoseWhosePositionIsReached) {
  std::mutex mutex;
  std::set<std::uint64_t> passed;
  std::vector<std::thread> threads;
  for (const std::uint64_t counter : {10, 20, 30}) {
    threads.emplace_back([&, counter] {
      if (!Barrier(Upto(counter), Proceeding(30s)).satisfied()) return;
      const std::lock_guard<std::mutex> lock(mutex);
      passed.insert(counter);
    });
  }
  const auto are = [&](std::set<std::uint64_t> wanted) {
    const std::lock_guard<std::mutex> lock(mutex);
    return passed == wanted;
  };
  Until([&] { return store_->parked() == 3; });
  log_->Move(20);
  Until([&] { return are({10, 20}); });
  EXPECT_EQ(server_->Waiting(), 1U);
  log_->Move(30);
  Until([&] { return are({10, 20, 30}); });
  for (std::thread& thread : threads) thread.join();
}

// BAR-33 to BAR-35.
TEST_F(LogTest, TheFreePathAsksNothingAndExpires) {
  SettingWords words;
  words.free_path_ttl = 500ms;
  Set(words);
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().satisfied());
  const int asked = fake_->asked;
  const auto free = telemetry::Barriers(telemetry::Outcome::kFree);
  ASSERT_TRUE(Barrier().satisfied());
  EXPECT_EQ(telemetry::Barriers(telemetry::Outcome::kFree), free + 1);
  EXPECT_EQ(fake_->asked, asked);
  Until([&] { return !server_->Holds("e1", 5); });
  ASSERT_TRUE(Barrier().satisfied());
  EXPECT_GT(fake_->asked, asked);
}

TEST_F(LogTest, AFreePassStillRefusesMistakes) {
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().satisfied());
  for (const BarrierOptions& wrong :
       {BarrierOptions().OnTimeout(Policy::kRedeliver), BarrierOptions().OnTimeout(Policy::kAsTimeout),
        BarrierOptions().OnVacuous(Policy::kAsTimeout), BarrierOptions().Timeout(-1s),
        BarrierOptions().Timeout(BarrierOptions::Seconds(INFINITY)), BarrierOptions().Timeout(BarrierOptions::Seconds(NAN))}) {
    const BarrierResult result = Barrier(wrong);
    ASSERT_NE(result.error(), nullptr);
    EXPECT_EQ(result.error()->code, ErrorCode::kConfiguration);  // BAR-28: there is no infinite wait to ask for
  }
}

TEST_F(LogTest, AFreePathOfZeroAlwaysAsks) {
  SettingWords words;
  words.free_path_ttl = 0ms;
  Set(words);
  log_->Move(10);
  const Scope scope(Upto(5));
  for (int n = 0; n < 3; ++n) {
    const int asked = fake_->asked;
    ASSERT_TRUE(Barrier().satisfied());
    EXPECT_GT(fake_->asked, asked);
  }
}

// BAR-33, EPOCH-15, EPOCH-2: whatever the change, nothing that was proved before it holds.
class DroppedProofs : public LogTest {
 protected:
  void AreDroppedBy(const std::function<void()>& change) {
    SettingWords words;
    words.free_path_ttl = 60s;
    Set(words);
    log_->Move(10);
    const Scope scope(Upto(10));
    ASSERT_TRUE(Barrier(Proceeding(20s)).satisfied());
    ASSERT_TRUE(server_->Holds("e1", 10));
    change();
    EXPECT_FALSE(Barrier(Upto(11), Proceeding(300ms)).satisfied());
    EXPECT_FALSE(server_->Holds("e1", 10));
    EXPECT_FALSE(Barrier(Proceeding(300ms)).satisfied()) << "the scope's own proof is gone, too";
  }
};

TEST_F(DroppedProofs, ByAnotherInstance) {
  AreDroppedBy([&] { log_->Become("i2", "e1", 5); });
}
TEST_F(DroppedProofs, ByAnotherEpoch) {
  AreDroppedBy([&] { log_->Become("i1", "e2", 50); });
}
TEST_F(DroppedProofs, ByAStepBack) {
  AreDroppedBy([&] { log_->Become("i1", "e1", 5); });
}

TEST_F(LogTest, AServerThatBreaksOffLosesItsProofs) {
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  log_->Move(10);
  ASSERT_TRUE(Barrier(Upto(10)).satisfied());
  const Ask answer = fake_->Get();
  fake_->Set(Down());
  EXPECT_FALSE(Barrier(Upto(11), Proceeding(50ms)).satisfied());
  EXPECT_FALSE(server_->Holds("e1", 10));
  fake_->Set(answer);
  EXPECT_TRUE(Barrier(Upto(10), Proceeding(20s)).satisfied());
}

// EPOCH-12, EPOCH-13.
TEST_F(LogTest, AnUnknownEpochIsWaitedForThenUnprovenAtOnceUntilTheServerChanges) {
  const auto waited = [&](std::uint64_t counter, Duration timeout, Duration& took) {
    const TimePoint began = Clock::now();
    const BarrierResult result = Barrier(Upto(counter, "e2"), Proceeding(timeout));
    took = Clock::now() - began;
    return result.store("log").verdict;
  };
  Duration took{};
  EXPECT_EQ(waited(7, 300ms, took), Verdict::kUnproven);
  EXPECT_GE(took, 290ms);
  EXPECT_EQ(waited(8, 300ms, took), Verdict::kUnproven);
  EXPECT_LT(took, 250ms);
  EXPECT_EQ(waited(8, 2s, took), Verdict::kUnproven);
  EXPECT_GT(took, 400ms) << "a longer deadline has not passed in vain yet";
  log_->Become("i1", "e2", 9);
  EXPECT_TRUE(Barrier(Upto(8, "e2"), Proceeding(20s)).satisfied());
}

// BAR-40.
TEST_F(LogTest, TheKnownLagAnswersAtOnceWhileAProberGoesOn) {
  EXPECT_FALSE(Barrier(Upto(5), Proceeding(200ms)).satisfied());
  Until([&] {
    const auto since = server_->ProbedSince("e1");
    return since && Clock::now() - *since > 200ms;
  });
  const TimePoint began = Clock::now();
  const BarrierResult result = Barrier(Upto(6), Proceeding(200ms));
  EXPECT_LT(Clock::now() - began, 150ms);
  EXPECT_EQ(result.store("log").verdict, Verdict::kTimedOut);
  EXPECT_NE(result.store("log").reason.find("lags"), std::string::npos) << result.Explain();
  EXPECT_TRUE(Barrier(Upto(0), Proceeding(20s)).satisfied()) << "a smaller position is judged by itself";
  log_->Move(6);
  Until([&] { return Barrier(Upto(6), Proceeding(200ms)).satisfied(); });
}

TEST_F(LogTest, AnImpossiblePositionDoesNotStopOthers) {
  log_->Move(10);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(Barrier(Upto(UINT64_MAX), Proceeding(50ms)).satisfied());
  log_->Move(11);
  EXPECT_TRUE(Barrier(Upto(11), Proceeding(20s)).satisfied());
}

// BAR-39.
TEST_F(LogTest, AtMostSoManyPark) {
  SettingWords words;
  words.max_waiters = 3;
  words.max_tasks = 2;
  Set(words);
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) threads.emplace_back([&] { EXPECT_TRUE(Barrier(Upto(1), Proceeding(30s)).satisfied()); });
  Until([&] { return store_->parked() == 3; });
  auto first = BarrierAsync(Upto(1), Proceeding(30s));
  auto second = BarrierAsync(Upto(1), Proceeding(30s));
  const TimePoint began = Clock::now();
  const BarrierResult refused = Barrier(Upto(1), Proceeding(30s));
  EXPECT_EQ(refused.store("log").verdict, Verdict::kTimedOut);
  EXPECT_NE(refused.store("log").reason.find("overloaded"), std::string::npos);
  EXPECT_NE(BarrierAsync(Upto(1), Proceeding(30s)).get().store("log").reason.find("overloaded"), std::string::npos);
  EXPECT_LT(Clock::now() - began, 10s);
  log_->Move(1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(first.get().satisfied() && second.get().satisfied());
  EXPECT_EQ(store_->parked(), 0);
}

// BAR-32, BAR-41: each callback once; the time is for a machine that is not loaded, here it is only printed.
TEST_F(LogTest, TenThousandCallbacksAreReleasedTogether) {
  constexpr int kMany = 10000;
  std::atomic<int> satisfied{0};
  std::atomic<int> called{0};
  for (int n = 0; n < kMany; ++n) {
    BarrierAsync(Upto(1 + static_cast<std::uint64_t>(n)), Proceeding(60s), [&](const BarrierResult& result) {
      satisfied += result.satisfied() ? 1 : 0;
      ++called;
    });
  }
  Until([&] { return store_->parked() == kMany; });
  const int before = fake_->asked;
  log_->Move(kMany);
  Until([&] { return fake_->asked > before; });
  const TimePoint began = Clock::now();
  Until([&] { return called == kMany; });
  std::printf("10000 callbacks were released in %.1f ms\n", Seconds(Clock::now() - began) * 1000);
  EXPECT_EQ(satisfied, kMany);
  EXPECT_EQ(store_->parked(), 0);
}

// BAR-32.
TEST_F(LogTest, ACancelledBarrierIsAnsweredOnceAndGivesItsPlaceUp) {
  std::promise<BarrierResult> promise;
  std::atomic<int> called{0};
  Waiter waiter = BarrierAsync(Upto(1), BarrierOptions().Timeout(60s), [&](BarrierResult result) {
    ++called;
    promise.set_value(std::move(result));
  });
  Until([&] { return store_->parked() == 1; });
  waiter.Cancel();
  const BarrierResult result = promise.get_future().get();
  EXPECT_EQ(result.store("log").verdict, Verdict::kTimedOut);
  EXPECT_NE(result.store("log").reason.find("cancelled"), std::string::npos) << result.Explain();
  ASSERT_NE(result.error(), nullptr);
  EXPECT_EQ(result.error()->code, ErrorCode::kTimedOut);
  waiter.Cancel();
  log_->Move(1);
  EXPECT_TRUE(Barrier(Upto(1), Proceeding(20s)).satisfied());
  EXPECT_EQ(called, 1);
  EXPECT_EQ(store_->parked(), 0);
  EXPECT_FALSE(server_->ProbedSince("e1")) << "nobody goes on asking for what was cancelled";
}

// BAR-31: nothing may block on the thread that ends all barriers.
TEST_F(LogTest, ABlockingBarrierInACallbackIsRefused) {
  log_->Move(1);
  std::promise<ErrorCode> blocked;
  BarrierAsync(Upto(1), Proceeding(20s), [&](const BarrierResult&) {
    const BarrierResult inner = Barrier(Upto(1));
    blocked.set_value(inner.error() == nullptr ? ErrorCode::kConfiguration : inner.error()->code);
  });
  EXPECT_EQ(blocked.get_future().get(), ErrorCode::kBlockingCall);
  std::promise<bool> passed;
  std::vector<std::thread> pool;
  std::mutex mutex;
  const auto executor = [&](std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex);
    pool.emplace_back(std::move(work));
  };
  BarrierAsync(Upto(1), Proceeding(20s).Executor(executor),
               [&](const BarrierResult&) { passed.set_value(Barrier(Upto(1)).satisfied()); });
  EXPECT_TRUE(passed.get_future().get());
  const std::lock_guard<std::mutex> lock(mutex);
  for (std::thread& thread : pool) thread.join();
}

// SCOPE-13.
TEST_F(LogTest, AForkedChildBeginsWithoutPollersAndProofs) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that begin in a forked child";
#endif
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  log_->Move(5);
  ASSERT_TRUE(Barrier(Upto(5)).satisfied());
  auto parked = BarrierAsync(Upto(6), Proceeding(60s));
  Until([&] { return store_->parked() == 1; });
  const pid_t child = fork();
  if (child == 0) {
    bool good = !server_->Holds("e1", 5) && store_->parked() == 0;
    log_->applied = 7;
    good = good && Barrier(Upto(7), Proceeding(20s)).satisfied() && BarrierAsync(Upto(7), Proceeding(20s)).get().satisfied();
    Shutdown();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(Barrier(Upto(5)).satisfied());
  log_->Move(6);
  EXPECT_TRUE(parked.get().satisfied());
}

TEST_F(LogTest, TheThreadEndsWhenNobodyWaits) {
  SetLinger(50ms);
  log_->Move(1);
  ASSERT_TRUE(Barrier(Upto(1)).satisfied());
  Until([&] { return !server_->Asking(); });
  log_->Move(2);
  EXPECT_TRUE(Barrier(Upto(2), Proceeding(20s)).satisfied()) << "and begins again for the next";
  SetLinger(10s);
}

TEST_F(LogTest, ShutdownAnswersWhoWaitsAndABarrierAfterItBeginsAnew) {
  auto waiting = BarrierAsync(Upto(1), Proceeding(60s));
  std::thread blocked([&] { EXPECT_FALSE(Barrier(Upto(1), Proceeding(60s)).satisfied()); });
  Until([&] { return store_->parked() == 2; });
  const TimePoint began = Clock::now();
  Shutdown();
  EXPECT_EQ(waiting.get().store("log").verdict, Verdict::kTimedOut);
  blocked.join();
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_FALSE(server_->Asking());
  log_->Move(1);
  EXPECT_TRUE(Barrier(Upto(1), Proceeding(20s)).satisfied());
}

TEST_F(EngineTest, ObjectsAreAskedTogether) {
  const auto answer = [](Span<const WriteId> ids, Server&) -> Answers {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      answers.push_back(id.key() == "a" ? Visibility::Visible()
                        : id.key() == "b" ? Visibility::NotYet() : Visibility::Unproven("no"));
    }
    return answers;
  };
  MakeFakeStore("o", {MakeFake("o1", answer)});
  const auto verdict = [](const std::vector<std::string>& keys) {
    std::vector<WriteId> ids;
    for (const std::string& key : keys) ids.push_back(Object("o", key));
    return Barrier(Lineage(ids), Proceeding(50ms)).store("o").verdict;
  };
  EXPECT_EQ(verdict({"a"}), Verdict::kVisible);
  EXPECT_EQ(verdict({"a", "b"}), Verdict::kTimedOut);
  EXPECT_EQ(verdict({"a", "b", "c"}), Verdict::kUnproven);
}

TEST_F(EngineTest, AShimThatAnswersTooLittleOrThrowsProvesNothing) {
  MakeFakeStore("few", {MakeFake("few", [](Span<const WriteId>, Server&) -> Answers { return std::vector<Visibility>(); })});
  MakeFakeStore("thrown", {MakeFake("thrown", [](Span<const WriteId>, Server&) -> Answers {
                  throw std::runtime_error("NOPERM this user has no permissions");
                })});
  const BarrierResult few = Barrier(Lineage(Object("few", "k")), BarrierOptions().Timeout(20s));
  ASSERT_NE(few.error(), nullptr);
  EXPECT_EQ(few.error()->code, ErrorCode::kUnproven);
  EXPECT_NE(few.error()->message.find("answers"), std::string::npos);
  const BarrierResult thrown = Barrier(Lineage(Object("thrown", "k")), BarrierOptions().Timeout(20s));  // BAR-13, BAR-30
  ASSERT_NE(thrown.error(), nullptr);
  EXPECT_NE(thrown.error()->message.find("NOPERM"), std::string::npos);
  EXPECT_LT(thrown.waited(), 10s);
}

// BAR-38.
TEST_F(EngineTest, AServerThatWasDownAndThenRefusesIsNotAskedInALoop) {
  const FakePtr fake = MakeFake("o1", Down());
  MakeFakeStore("o", {fake});
  const Lineage lineage(Object("o", "k"));
  EXPECT_FALSE(Barrier(lineage, Proceeding(200ms)).satisfied());
  fake->Set([](Span<const WriteId>, Server&) { return Answers::Refused("NOAUTH"); });
  const BarrierResult refused = Barrier(lineage, BarrierOptions().Timeout(20s));
  ASSERT_NE(refused.error(), nullptr);
  EXPECT_NE(refused.error()->message.find("NOAUTH"), std::string::npos);
  const int before = fake->asked;
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(fake->asked - before, 50);
}

// A store that waits by itself.
class BlockingShim : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Objects().BlockingWait(true); }
  Answers Wait(Span<const WriteId> ids, Server& server, Duration /*timeout*/) override {
    ++waits;
    std::vector<Visibility> answers;
    bool there = false;
    for (const WriteId& id : ids) {
      there = there || id.key() == "there";
      answers.push_back(id.key() == "there" ? Visibility::Visible() : Visibility::NotYet());
    }
    const TimePoint deadline = Clock::now() + 30s;
    while (!there && !server.Interrupted() && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    return answers;
  }
  static std::atomic<int> waits;
};
std::atomic<int> BlockingShim::waits{0};

TEST_F(EngineTest, ABlockingWaitIsToldOfANewcomerAndNotUsedForALook) {
  BlockingShim::waits = 0;
  MakeFakeStore<BlockingShim>("w", {MakeFake("w1", Always(Visibility::NotYet()))});
  EXPECT_FALSE(Barrier(Lineage(Object("w", "k")), Proceeding(0ms)).satisfied());
  EXPECT_EQ(BlockingShim::waits, 0);
  auto first = BarrierAsync(Lineage(Object("w", "k")), Proceeding(3s));
  Until([] { return BlockingShim::waits > 0; });
  const BarrierResult result = Barrier(Lineage(Object("w", "there")), Proceeding(30s));
  EXPECT_TRUE(result.satisfied());
  EXPECT_LT(result.waited(), 10s);
  EXPECT_FALSE(first.get().satisfied());
}

// A channel that says again and again that something has changed.
class PushingWatch : public Watch {
 public:
  explicit PushingWatch(std::function<void()> on_change)
      : thread_([this, on_change = std::move(on_change)] {
          while (!ended_) {
            on_change();
            ++pushed;
            std::this_thread::sleep_for(2ms);
          }
        }) {}
  ~PushingWatch() override {
    ended_ = true;
    thread_.join();
  }
  static std::atomic<int> pushed;

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};
std::atomic<int> PushingWatch::pushed{0};

class PushShim : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Objects().Push(true); }
  Result<std::unique_ptr<Watch>> OpenWatch(Server&, std::function<void()> on_change) override {
    return std::unique_ptr<Watch>(std::make_unique<PushingWatch>(std::move(on_change)));
  }
};

// SHIM-19: told again and again that something has changed, a barrier still asks, and believes the answer.
TEST_F(EngineTest, APushIsOnlyAHint) {
  PushingWatch::pushed = 0;
  const FakePtr fake = MakeFake("p", Always(Visibility::NotYet()));
  MakeFakeStore<PushShim>("pushing", {fake});
  auto waiting = BarrierAsync(Lineage(Object("pushing", "k")), Proceeding(60s));
  Until([] { return PushingWatch::pushed > 20; });
  const int asked = fake->asked;
  Until([&] { return fake->asked > asked; });
  EXPECT_EQ(waiting.wait_for(0ms), std::future_status::timeout);
  fake->Set(Always(Visibility::Visible()));
  EXPECT_TRUE(waiting.get().satisfied());
}

class OwnPaceShim : public FakeShim {
 public:
  Duration OwnPace() const noexcept override { return 50ms; }
};

// BAR-38: with back-off the fortieth question would come after 19 s.
TEST_F(EngineTest, AShimWithAPaceOfItsOwnIsCalledWithoutBackOff) {
  const FakePtr fake = MakeFake("paced", Always(Visibility::NotYet()));
  MakeFakeStore<OwnPaceShim>("paced", {fake});
  auto waiting = BarrierAsync(Lineage(Object("paced", "k")), Proceeding(60s));
  Until([&] { return fake->asked >= 40; }, 14s);
  fake->Set(Always(Visibility::Visible()));
  EXPECT_TRUE(waiting.get().satisfied());
}

// No data race, no lost wake-up: barriers from 16 threads while the server moves, breaks off and changes its epoch.
TEST_F(LogTest, SixteenThreadsOfBarriers) {
  SettingWords words;
  words.free_path_ttl = 20ms;
  Set(words);
  std::atomic<bool> ended{false};
  std::thread mover([&] {
    for (std::uint64_t at = 1; !ended; ++at) {
      log_->Move(at);
      if (at % 50 == 0) fake_->Set(Down());
      if (at % 50 == 5) {
        fake_->Set([log = log_](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); });
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 16; ++number) {
    threads.emplace_back([&, number] {
      for (std::uint64_t turn = 0; turn < 60; ++turn) {
        const Scope scope(Upto(turn * 3));
        passed += Barrier(Proceeding(number % 4 == 0 ? 0ms : 2s)).satisfied() ? 1 : 0;
        passed += Barrier(Proceeding(2s)).satisfied() ? 1 : 0;
        Waiter waiter = BarrierAsync(Upto(turn * 5), Proceeding(2s), [&](const BarrierResult& result) {
          passed += result.satisfied() ? 1 : 0;
        });
        if (turn % 3 == 0) waiter.Cancel();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ended = true;
  mover.join();
  EXPECT_GT(passed, 500);
  Until([&] { return store_->parked() == 0; });
}

}  // namespace
}  // namespace antipode::testing
