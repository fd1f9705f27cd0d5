// When a server is asked next (BAR-38, BAR-66): by a prediction where its position grows.
#include "engine/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/fakes.h"

namespace antipode::testing {
namespace {

constexpr Duration kPoll = 5ms;
constexpr Duration kStep = 500us;
constexpr std::uint64_t kFar = 1'000'000'000;

// A thread that asks, played on a clock of its own. `position`: what is there at a time.
class FailoverRun {
 public:
  using Position = std::function<std::uint64_t(Duration)>;

  FailoverRun(Position position, bool pushes) : position_(std::move(position)), pushes_(pushes) {}

  // Plays so long; returns when it was asked meanwhile.
  std::vector<Duration> Play(Duration duration, std::uint64_t nearest) {
    const std::size_t before = asked.size();
    for (const Duration until = now_ + duration; now_ < until; now_ += kStep) {
      if (pushes_ && position_(now_) > pushed_) {
        pushed_ = position_(now_);
        pace_.NoteNews();
        growth.NotePush();
      }
      const auto expected = growth.ExpectedAt("i1", "e1", nearest);
      if (Now() >= pace_.Due(kPoll, expected, growth.IsPushedTo(nearest))) AskNow(true);
    }
    return {asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end()};
  }

  void AskNow(bool is_paced) {
    const std::uint64_t there = position_(now_);
    const bool moved = asked.empty() || there > position_(asked.back());
    asked.push_back(now_);
    pushed_ = there;  // what was pushed before the answer, the answer knows
    pace_.Begin(Now(), is_paced);
    growth.Note("i1", "e1", Now(), there);
    pace_.End(kPoll, false, moved, false);
  }

  TimePoint Now() const { return TimePoint(1h) + now_; }

  // The first question from a time on.
  Duration From(Duration time) const {
    return *std::find_if(asked.begin(), asked.end(), [=](Duration each) { return each >= time; });
  }

  Growth growth;
  std::vector<Duration> asked;

 private:
  const Position position_;
  const bool pushes_;
  Pace pace_{TimePoint()};
  std::uint64_t pushed_ = 0;
  Duration now_{};
};

// So many a second.
FailoverRun::Position Even(int rate) {
  return [rate](Duration at) { return static_cast<std::uint64_t>(at.count() * rate / 1'000'000'000); };
}

class PaceTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithPushesOrWithout, PaceTest, ::testing::Bool());

TEST_P(PaceTest, AServerThatGrowsAllTheTimeIsAskedNoMoreThanTheCapSays) {
  FailoverRun played(Even(2000), GetParam());
  played.Play(500ms, kFar);
  const std::size_t asked = played.Play(1s, kFar).size();
  EXPECT_GE(asked, 15U);
  EXPECT_LE(asked, 21U);
}

TEST_P(PaceTest, ANearPositionIsAskedForWhenItShouldBeThere) {
  FailoverRun played(Even(1000), GetParam());
  played.Play(500ms, kFar);
  played.AskNow(false);
  const Duration there = played.asked.back() + 30ms;
  const Duration first = played.Play(50ms, static_cast<std::uint64_t>(there / 1ms)).front();
  EXPECT_GE(first, there - 1ms);
  EXPECT_LE(first, there + 6ms);
}

TEST_P(PaceTest, WhatComesBeforeItsPredictionIsFoundWithinTheCap) {
  constexpr Duration kLeap = 710ms;
  FailoverRun played([=](Duration at) { return static_cast<std::uint64_t>(at / 10ms) + (at >= kLeap ? 1000 : 0); },
                GetParam());
  played.Play(900ms, 1000);
  EXPECT_LE(played.From(kLeap), kLeap + kCap + kStep);
}

TEST(Pace, FewPushesAreCounted) {
  FailoverRun played([](Duration at) { return static_cast<std::uint64_t>(at / 2ms) * 100; }, true);
  played.Play(500ms, kFar);
  played.AskNow(false);
  const auto third = static_cast<std::uint64_t>(played.asked.back() / 2ms) + 3;
  const Duration first = played.Play(50ms, third * 100).front();
  EXPECT_GE(first, third * 2ms);
  EXPECT_LE(first, third * 2ms + 2 * kStep);
}

TEST(Pace, PushesThatComeSeldomAreAskedForEach) {
  constexpr Duration kLarge = 480ms;
  FailoverRun played([=](Duration at) { return static_cast<std::uint64_t>(at / 60ms) + 1 + (at >= kLarge ? 1000 : 0); },
                true);
  played.Play(kLarge + 50ms, 1005);
  EXPECT_LE(played.From(kLarge), kLarge + kPoll + 2 * kStep);
}

TEST(Pace, AServerThatStandsStillIsAskedAtThePaceOfPoll) {
  FailoverRun played([](Duration at) { return static_cast<std::uint64_t>(std::min<Duration>(at, 500ms) / 1ms); }, false);
  played.Play(600ms, kFar);
  const std::size_t asked = played.Play(1s, kFar).size();
  EXPECT_GE(asked, 15U);
  EXPECT_LE(asked, 25U);
}

// BAR-38: 50 ms behind the first question that was not answered.
TEST(Pace, ThePauseBehindSilenceDoublesUpToHalfASecond) {
  Pace pace((TimePoint()));
  std::vector<Duration> pauses;
  for (const bool is_down : {true, true, true, true, true, true, false, true, true}) {
    pace.End(kPoll, is_down, false, false);
    pauses.push_back(pace.retry());
  }
  const std::vector<Duration> wanted = {50ms, 100ms, 200ms, 400ms, 500ms, 500ms, 50ms, 50ms, 100ms};
  EXPECT_EQ(pauses, wanted);
}

TEST(Pace, NothingIsPredictedForOtherData) {
  FailoverRun played(Even(1000), false);
  played.Play(500ms, kFar);
  EXPECT_TRUE(played.growth.ExpectedAt("i1", "e1", 600));
  EXPECT_FALSE(played.growth.ExpectedAt("i1", "e2", 600));
  EXPECT_FALSE(played.growth.ExpectedAt("i2", "e1", 600));
  played.growth.Note("i1", "e1", played.Now(), 10);  // it went back
  EXPECT_FALSE(played.growth.ExpectedAt("i1", "e1", 600));
}

using PacedTest = EngineTest;

std::uint64_t Position() { return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / 1ms) + kFar; }

// BAR-66: one question a cap, while a barrier waits for what is far; one that is near passes when it is there.
TEST_F(PacedTest, PushesAtEachWriteAreNotAskedFor) {
  const FakePtr fake = MakeFake("growing-1", [](Span<const WriteId> ids, Server& server) -> Answers {
    const std::uint64_t now = Position();
    server.Applied("i1", "e1", {{"e1", now}});
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      answers.push_back(id.ordered()->counter <= now ? Visibility::Visible() : Visibility::NotYet("behind"));
    }
    return answers;
  });
  MakeFakeStore<PushingShim>("growing", {fake});
  const auto waiting = BarrierAsync(Lineage(At("growing", "e1", Position() + kFar * kFar)), Proceeding(50s));
  Until([&] { return fake->asked >= 8; });  // how it grows is known by then
  const int asked = fake->asked;
  const int pushed = ManyPushes::pushed;
  const TimePoint begun = Clock::now();
  Until([&] { return ManyPushes::pushed - pushed >= 300; });
  EXPECT_LE(fake->asked - asked, (Clock::now() - begun) / kCap + 5);
  const std::uint64_t wanted = Position() + 100;
  EXPECT_TRUE(Barrier(Lineage(At("growing", "e1", wanted)), Proceeding(50s)).satisfied());
  EXPECT_GE(Position(), wanted);
}

}  // namespace
}  // namespace antipode::testing
