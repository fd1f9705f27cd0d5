// Many who wait at one server: overload, callbacks, and who gives up.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <future>

#include "antipode/scope.h"
#include "engine/log_test.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

// BAR-40, BAR-57: behind another server by more than the deadline: looked at, and then answered, while a prober goes
// on.
TEST_F(LogTest, ALagAboveTheDeadlineAnswersBehindALook) {
  const auto ahead = std::make_shared<FakeLog>();
  MakeFakeStore<LogShim>(
      "log", {MakeFake("ahead", [ahead](Span<const WriteId> ids, Server& at) { return ahead->Judge(ids, at); })});
  ahead->Move(5);
  EXPECT_FALSE(Barrier(Upto(5), Proceeding(300ms)).satisfied());  // from now on the lag is known
  Until([&] {
    const TimePoint began = Clock::now();
    const BarrierResult result = Barrier(Upto(5), Proceeding(200ms));
    EXPECT_EQ(result.store("log").verdict, Verdict::kTimedOut);
    return Clock::now() - began < 150ms && result.store("log").reason.find("lags by") != std::string::npos;
  });
  log_->Move(5);
  EXPECT_TRUE(Barrier(Upto(5), Proceeding(200ms)).satisfied()) << "what has come is seen by the look";
}

// BAR-57: what somebody wishes for makes no lag.
TEST_F(LogTest, AWishIsNoLag) {
  EXPECT_FALSE(Barrier(Upto(7), Proceeding(100ms)).satisfied());
  std::thread mover([&] {
    std::this_thread::sleep_for(150ms);
    log_->Move(7);
  });
  EXPECT_TRUE(Barrier(Upto(7), Proceeding(20s)).satisfied());
  mover.join();
  EXPECT_FALSE(Barrier(Upto(UINT64_MAX), Proceeding(50ms)).satisfied());
  const TimePoint began = Clock::now();
  EXPECT_FALSE(Barrier(Upto(8), Proceeding(100ms)).satisfied());
  EXPECT_GE(Clock::now() - began, 100ms) << "nobody knows of a lag: it is waited for";
}

// BAR-40: waits that timed out for one key say nothing of another, and nothing without a look.
TEST_F(EngineTest, TimeoutsOfOneKeyDoNotCountAgainstAnother) {
  std::atomic<bool> is_there{false};
  const FakePtr fake = MakeFake("objects", [&](Span<const WriteId> ids, Server&) {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      const bool shown = id.key() == "good" || is_there;
      answers.push_back(shown ? Visibility::Visible() : Visibility::NotYet());
    }
    return Answers(answers);
  });
  MakeFakeStore("s", {fake});
  const auto judge = [](const char* key, Duration timeout) {
    return Barrier(Lineage(Object("s", key)), Proceeding(timeout));
  };
  for (int n = 0; n < 6; ++n) EXPECT_FALSE(judge("never", 50ms).satisfied());
  const BarrierResult early = judge("never", 90ms);
  EXPECT_NE(early.store("s").reason.find("in a row timed out"), std::string::npos) << early.Explain();
  EXPECT_EQ(early.store("s").message_code(), "AP205");  // OBS-15
  EXPECT_TRUE(judge("good", 50ms).complete());
  is_there = true;
  EXPECT_TRUE(judge("never", 50ms).complete()) << "it is looked up before it is refused";
}

// BAR-40: where the question was put off, nobody has looked.
TEST_F(EngineTest, AQuestionThatIsPutOffIsNoLook) {
  std::atomic<bool> is_put_off{false};
  MakeFakeStore("s", {MakeFake("busy", [&](Span<const WriteId> ids, Server&) {
    return Answers(std::vector(ids.size(), is_put_off ? Visibility::Unanswered("throttled") : Visibility::NotYet()));
  })});
  const auto judge = [](Duration timeout) {
    return Barrier(Lineage(Object("s", "never")), Proceeding(timeout)).store("s").reason;
  };
  for (int n = 0; n < 6; ++n) judge(50ms);
  EXPECT_NE(judge(90ms).find("in a row timed out"), std::string::npos);
  is_put_off = true;
  EXPECT_EQ(judge(90ms).find("in a row timed out"), std::string::npos);
}

// BAR-60: parking is not the dearer the more wait, the deadline holds meanwhile, and so many park at most.
TEST_F(EngineTest, AHostileLineageIsNoOutage) {
  std::atomic<bool> is_there{false};
  MakeFakeStore("s", {MakeFake("none", [&](Span<const WriteId> asked, Server&) {
    return Answers(std::vector(asked.size(), is_there.load() ? Visibility::Visible() : Visibility::NotYet()));
  })});
  std::vector<WriteId> ids;
  for (int n = 0; n < 20'000; ++n) ids.push_back(Object("s", "no" + std::to_string(n)));
  const Lineage lineage(ids);
  std::vector<std::future<BarrierResult>> all;
  for (int n = 0; n < 6; ++n) all.push_back(BarrierAsync(lineage, Proceeding(120s)));
  const auto is_over = [](const auto& each) { return each.wait_for(0s) == std::future_status::ready; };
  Until([&] { return std::any_of(all.begin(), all.end(), is_over); }, 60s);
  MakeFakeStore("t", {MakeFake("well", Always(Visibility::Visible()))});
  EXPECT_TRUE(Barrier(Lineage(Object("t", "k")), Proceeding(20s)).complete()) << "another store is as it was";
  const TimePoint began = Clock::now();
  EXPECT_FALSE(Barrier(lineage, Proceeding(500ms)).satisfied());
  EXPECT_LT(Clock::now() - began, 30s);
  is_there = true;
  int refused = 0;
  for (auto& each : all) {
    const BarrierResult result = each.get();
    const bool is_refused = result.store("s").reason.find("overloaded") != std::string::npos;
    EXPECT_NE(result.satisfied(), is_refused) << result.store("s").reason;
    refused += is_refused ? 1 : 0;
  }
  EXPECT_GE(refused, 1);
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
  Until([&] { return store_->impl().parked() == 3; });
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
  EXPECT_EQ(store_->impl().parked(), 0);
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
  Until([&] { return store_->impl().parked() == kMany; });
  const int before = fake_->asked;
  log_->Move(kMany);
  Until([&] { return fake_->asked > before; });
  const TimePoint began = Clock::now();
  Until([&] { return called == kMany; });
  std::printf("10000 callbacks were released in %.1f ms\n", Seconds(Clock::now() - began) * 1000);
  EXPECT_EQ(satisfied, kMany);
  EXPECT_EQ(store_->impl().parked(), 0);
}

// BAR-32.
TEST_F(LogTest, ACancelledBarrierIsAnsweredOnceAndGivesItsPlaceUp) {
  std::promise<BarrierResult> promise;
  std::atomic<int> called{0};
  Waiter waiter = BarrierAsync(Upto(1), BarrierOptions().Timeout(60s), [&](BarrierResult result) {
    ++called;
    promise.set_value(std::move(result));
  });
  Until([&] { return store_->impl().parked() == 1; });
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
  EXPECT_EQ(store_->impl().parked(), 0);
  EXPECT_FALSE(server_->impl().ProbedSince("e1")) << "nobody goes on asking for what was cancelled";
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
  Until([&] { return store_->impl().parked() == 0; });
}

}  // namespace
}  // namespace antipode::testing
