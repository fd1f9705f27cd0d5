// How a server is asked: single flight, back-off, objects together, a blocking wait, a push.
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "antipode/scope.h"
#include "antipode/shim/write.h"
#include "engine/log_test.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

// BAR-38: at most 25 questions a second to a silent server.
TEST_F(LogTest, OnePollerHoweverManyBarriersWait) {
  std::vector<std::future<BarrierResult>> waits;
  for (std::uint64_t n = 1; n <= 100; ++n) waits.push_back(BarrierAsync(Upto(n), Proceeding(30s)));
  Until([&] { return store_->impl().parked() == 100; });
  Until([&] { return fake_->asked >= 8; });  // past the first, quick polls: what is measured is the steady state
  const int before = fake_->asked;
  const TimePoint began = Clock::now();
  Until([&] { return fake_->asked >= before + 10; });
  EXPECT_LE(10 / Seconds(Clock::now() - began), 25.0);
  log_->Move(100);
  for (auto& wait : waits) EXPECT_TRUE(wait.get().satisfied());
  EXPECT_EQ(store_->impl().parked(), 0);
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
  Until([&] { return store_->impl().parked() == 3; });
  log_->Move(20);
  Until([&] { return are({10, 20}); });
  EXPECT_EQ(server_->impl().Waiting(), 1U);
  log_->Move(30);
  Until([&] { return are({10, 20, 30}); });
  for (std::thread& thread : threads) thread.join();
}

// SHIM-15: each identifier has its own answer, an unproven one its reason.
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
  EXPECT_NE(Barrier(Lineage(Object("o", "c")), Proceeding(50ms)).store("o").reason.find("no"), std::string::npos);
}

TEST_F(EngineTest, AShimThatAnswersTooLittleOrThrowsProvesNothing) {
  MakeFakeStore("few",
                {MakeFake("few", [](Span<const WriteId>, Server&) -> Answers { return std::vector<Visibility>(); })});
  MakeFakeStore("thrown", {MakeFake("thrown", [](Span<const WriteId>, Server&) -> Answers {
                  throw std::runtime_error("NOPERM this user has no permissions");
                })});
  const BarrierResult few = Barrier(Lineage(Object("few", "k")), BarrierOptions().Timeout(20s));
  ASSERT_NE(few.error(), nullptr);
  EXPECT_EQ(few.error()->code, ErrorCode::kUnproven);
  EXPECT_NE(few.error()->message.find("answers"), std::string::npos);
  // BAR-13, BAR-30.
  const BarrierResult thrown = Barrier(Lineage(Object("thrown", "k")), BarrierOptions().Timeout(20s));
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

// SHIM-19: told again and again that something has changed, a barrier still asks, and believes the answer.
TEST_F(EngineTest, APushIsOnlyAHint) {
  ManyPushes::pushed = 0;
  const FakePtr fake = MakeFake("p", Always(Visibility::NotYet()));
  MakeFakeStore<PushingShim>("pushing", {fake});
  auto waiting = BarrierAsync(Lineage(At("pushing", "e", 1)), Proceeding(60s));
  Until([] { return ManyPushes::pushed > 20; });
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

// SCOPE-24: a write that several scopes share, and a version that no lineage can hold: it has happened all the same.
TEST_F(EngineTest, WhatBecomesOfAWriteIsOfEachOfItsScopes) {
  const auto store = MakeFakeStore<LogShim>("log", {});
  for (const std::string& epoch : {std::string("e1"), std::string(5000, 'x')}) {
    const Scope outer;
    Writing write(store);
    const Scope inner;
    write.JoinScope();
    write.JoinScope();
    EXPECT_EQ(inner->pending().size(), 1U);
    EXPECT_FALSE(inner->lineage().IsComplete({"log"}));
    EXPECT_TRUE(write.Beside().IsComplete({"log"})) << "its own is no other write";
    write.RecordUpperBound(Ordered{epoch, 1});
    for (const Scope* scope : {&outer, &inner}) {
      EXPECT_TRUE((*scope)->pending().empty());
      EXPECT_EQ((*scope)->lineage().IsComplete({"log"}), epoch == "e1");
      EXPECT_EQ((*scope)->lineage().size(), epoch == "e1" ? 1U : 0U);
    }
  }
}

// SCOPE-24: the scopes that wrote may have ended; and who comes late may know of newer writes.
TEST_F(EngineTest, WhoCommitsAWriteHasWhatBecomesOfIt) {
  const auto store = MakeFakeStore<LogShim>("log", {});
  const auto write = [&] {
    const Scope ended;
    return std::make_unique<Writing>(store);
  }();
  write->JoinCommitter();  // outside any scope there is none
  const Scope commits(Lineage(*WriteId::Position("log", "e1", 9)));
  for (int times = 0; times < 2; ++times) write->JoinCommitter();
  EXPECT_EQ(commits->pending().size(), 1U);
  write->Record(Ordered{"e1", 5});
  write->JoinCommitter();
  EXPECT_TRUE(commits->pending().empty());
  EXPECT_EQ(commits.lineage().Serialize(), "1~log..e1.9");
}

}  // namespace
}  // namespace antipode::testing
