// When the needs of one barrier stand together, told step by step (BAR-63, spec/tla/Reopen.tla).
#include "engine/need.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/log_test.h"
#include "store/server.h"

namespace antipode::testing {
namespace {

// Two servers whose thread is held in its first question, so that tests settle the needs themselves.
class GroupTest : public EngineTest {
 protected:
  GroupTest() {
    const Ask held = [hold = hold_](Span<const WriteId> ids, Server&) {
      while (hold->load()) std::this_thread::sleep_for(1ms);
      return std::vector(ids.size(), Visibility::NotYet("behind"));
    };
    servers_ = MakeFakeStore<LogShim>("log", {MakeFake("first", held), MakeFake("second", held)})->Servers();
    for (const auto& server : servers_) needs_.push_back(&group_->Add(At("log", "e1", 5), server));
    EXPECT_TRUE(group_->Parked());
  }
  ~GroupTest() override {
    group_->GiveUp();
    hold_->store(false);
  }

  bool Settle(int which, TimePoint asked_at, std::uint64_t generation, bool is_kept = false) {
    const Proof proof{asked_at, generation, is_kept};
    const Visibility visible = Visibility::Visible();
    return group_->Settle(*needs_[static_cast<std::size_t>(which)], &visible, &proof);
  }

  Server& first() { return *servers_[0]; }
  Server& second() { return *servers_[1]; }
  std::uint64_t Generation(int which) { return servers_[static_cast<std::size_t>(which)]->impl().generation(); }

  const std::shared_ptr<std::atomic<bool>> hold_ = std::make_shared<std::atomic<bool>>(true);
  const std::shared_ptr<WaitGroup> group_ = std::make_shared<WaitGroup>(1s);
  std::vector<std::shared_ptr<Server>> servers_;
  std::vector<PendingWait*> needs_;
};

// All is settled, nobody has looked yet if it stands, and the deadline comes.
TEST_F(GroupTest, TheDeadlineLooksForItself_BAR_63) {
  const TimePoint now = Clock::now();
  EXPECT_FALSE(Settle(0, now, Generation(0)));
  first().Reset();
  EXPECT_TRUE(Settle(1, now, Generation(1)));
  EXPECT_TRUE(group_->End());
  EXPECT_TRUE(needs_[0]->Is(Verdict::kNotYet));
  EXPECT_TRUE(needs_[1]->Is(Verdict::kVisible));
  EXPECT_FALSE(group_->Conclude()) << "and nobody is woken behind it";
}

// Ages, too: one was shown long before the last.
TEST_F(GroupTest, TheDeadlineLooksAtAges_BAR_63) {
  const TimePoint now = Clock::now();
  Settle(0, now - 1h, Generation(0));
  Settle(1, now, Generation(1));
  EXPECT_TRUE(group_->End());
  EXPECT_TRUE(needs_[0]->Is(Verdict::kNotYet));
  EXPECT_TRUE(needs_[1]->Is(Verdict::kVisible));
}

// Nobody would look if it stands.
TEST_F(GroupTest, WhatComesBehindTheDeadlineChangesNothing_BAR_63) {
  EXPECT_TRUE(group_->End());
  for (const int which : {0, 1}) {
    EXPECT_FALSE(Settle(which, Clock::now(), Generation(which)));
    EXPECT_TRUE(needs_[static_cast<std::size_t>(which)]->done);
    EXPECT_FALSE(needs_[static_cast<std::size_t>(which)]->answer);
  }
}

// Reopen.tla: it is compared, and the moment is another one.
TEST_F(GroupTest, WhatDoesNotStandIsOpenedOnceAndAskedForAtOnce_BAR_63) {
  const TimePoint now = Clock::now();
  const Duration ttl = CurrentSettings()->free_path_ttl;
  Settle(0, now, Generation(0));
  first().Reset();
  EXPECT_TRUE(Settle(1, now, Generation(1)));
  EXPECT_FALSE(group_->Conclude());
  EXPECT_TRUE(needs_[0]->parked);
  EXPECT_EQ(first().impl().Waiting(), 1U);
  EXPECT_EQ(second().impl().Waiting(), 0U);
  EXPECT_FALSE(needs_[0]->repeats) << "its data may be others";
  EXPECT_TRUE(Settle(0, now + 10s, Generation(0)));
  EXPECT_FALSE(group_->Conclude()) << "the other's proof is older than the moment allows";
  EXPECT_TRUE(needs_[1]->parked);
  EXPECT_TRUE(needs_[1]->repeats);
  EXPECT_TRUE(Settle(1, now + 10s - ttl / 2, Generation(1)));
  EXPECT_TRUE(group_->Conclude());
  EXPECT_FALSE(group_->Conclude()) << "whoever comes first releases";
}

// Both are opened in one step: who settles the first again is not the last.
TEST_F(GroupTest, AllThatDoesNotStandIsOpenedInOneStep_BAR_63) {
  const TimePoint now = Clock::now();
  Settle(0, now, Generation(0));
  Settle(1, now, Generation(1));
  first().Reset();
  second().Reset();
  EXPECT_FALSE(group_->Conclude());
  EXPECT_FALSE(group_->Conclude()) << "they are open";
  EXPECT_EQ(first().impl().Waiting() + second().impl().Waiting(), 2U);
  EXPECT_FALSE(Settle(0, now, Generation(0)));
  EXPECT_TRUE(Settle(1, now, Generation(1)));
  EXPECT_TRUE(group_->Conclude());
}

// It is over as soon as it is parked again: who parked it is told so, as nobody else will wake it.
TEST_F(GroupTest, OneNeedThatIsProvedAnewWhileItIsParkedIsOver_BAR_63) {
  const auto alone = std::make_shared<WaitGroup>(60s);
  PendingWait& need = alone->Add(At("log", "e1", 5), servers_[0]);
  const Proof before{Clock::now(), Generation(0)};
  const Visibility visible = Visibility::Visible();
  EXPECT_FALSE(alone->Settle(need, &visible, &before));
  first().Reset();
  first().BeginQuestion();
  first().Applied("i1", "e1", {{"e1", 5}});
  EXPECT_FALSE(alone->Parked()) << "nothing is to be waited for";
  EXPECT_TRUE(need.Is(Verdict::kVisible));
  EXPECT_EQ(need.generation, Generation(0));
}

// What is opened again is parked at no server until its turn comes: giving up in between takes nothing away there.
TEST_F(GroupTest, WhatIsGivenUpBeforeItIsParkedAgainIsNotCounted_BAR_63) {
  const TimePoint now = Clock::now();
  Settle(0, now, Generation(0));
  needs_[0]->parked = true;  // it was, before it was settled
  needs_[0]->Open(now);
  group_->GiveUp();
  EXPECT_EQ(first().impl().Waiting(), 0U);
  EXPECT_FALSE(first().impl().Park(*needs_[0])) << "its barrier is over";
  EXPECT_EQ(first().impl().Waiting(), 0U);
}

// A need that was settled by what others had asked for is as old as that, and the moment is now.
TEST_F(GroupTest, WhatOthersAskedForIsOfThisMoment_BAR_63) {
  const TimePoint now = Clock::now();
  const Duration ttl = CurrentSettings()->free_path_ttl;
  Settle(0, now - ttl - 10ms, Generation(0));
  Settle(1, now - ttl / 2, Generation(1), true);
  EXPECT_FALSE(group_->Conclude()) << "the first is older than the moment allows";
  EXPECT_TRUE(needs_[0]->parked);
}

}  // namespace
}  // namespace antipode::testing
