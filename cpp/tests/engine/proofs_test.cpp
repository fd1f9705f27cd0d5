// What a server has proved: the free path, proofs that are dropped, ended and unknown epochs.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "antipode/carrier.h"
#include "antipode/response_stream.h"
#include "antipode/scope.h"
#include "base/observers.h"
#include "engine/log_test.h"
#include "store/server.h"

namespace antipode::testing {
namespace {

// BAR-33 to BAR-35.
TEST_F(LogTest, TheFreePathAsksNothingAndExpires) {
  SettingWords words;
  words.free_path_ttl = 500ms;
  Set(words);
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().satisfied());
  // The first barrier may have the server asked once more behind its back: that is no question of the second.
  Until([&] {
    const int asked = fake_->asked;
    const auto free = CountedBarriers(BarrierOutcome::kFree);
    return Barrier().satisfied() && fake_->asked == asked &&
           CountedBarriers(BarrierOutcome::kFree) == free + 1;
  });
  // A question from before may be answered behind the expiry: then the next one is waited for.
  Until([&] {
    const bool expired = !server_->impl().Holds("e1", 5);
    const int asked = fake_->asked;
    return Barrier().satisfied() && expired && fake_->asked > asked;
  });
}

TEST_F(LogTest, AFreePassStillRefusesMistakes) {
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().satisfied());
  for (const BarrierOptions& wrong :
       {BarrierOptions().OnTimeout(Policy::kRedeliver), BarrierOptions().OnTimeout(Policy::kAsTimeout),
        BarrierOptions().OnVacuous(Policy::kAsTimeout), BarrierOptions().Timeout(-1s),
        BarrierOptions().Timeout(BarrierOptions::Seconds(INFINITY)),
        BarrierOptions().Timeout(BarrierOptions::Seconds(NAN))}) {
    const BarrierResult result = Barrier(wrong);
    ASSERT_NE(result.error(), nullptr);
    EXPECT_EQ(result.error()->code, ErrorCode::kConfiguration);  // BAR-28: there is no infinite wait to ask for
  }
}

// BAR-15, BAR-35, BAR-44: nor does a proof from before pass for what a stream's messages depend on.
TEST_F(LogTest, AnOpenResponseStreamIsJudgedIncomplete_PROP_28) {
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().complete());
  ASSERT_TRUE(Barrier().complete());
  ResponseStream stream("inside");
  ASSERT_TRUE(Barrier().complete());  // nothing is in hand yet
  stream.Message();
  for (int n = 0; n < 2; ++n) {
    const BarrierResult result = Barrier();
    EXPECT_TRUE(result.satisfied());
    EXPECT_FALSE(result.complete());
    ASSERT_EQ(result.gaps().size(), 1U);
    EXPECT_EQ(result.gaps().front().reason, "streaming");
  }
  const BarrierResult strict = Barrier(BarrierOptions().RequireComplete());
  ASSERT_NE(strict.error(), nullptr);
  EXPECT_EQ(strict.error()->code, ErrorCode::kIncomplete);
  EXPECT_NE(strict.Explain().find("a response stream of inside is open"), std::string::npos) << strict.Explain();
  const std::map<std::string, std::string> trailer{{"antipode-lineage", "1~log..e1.20"}};
  stream.End(HeaderCarrier(trailer));
  EXPECT_FALSE(Barrier(Proceeding(50ms)).satisfied());
  log_->Move(20);
  const BarrierResult whole = Barrier();
  EXPECT_TRUE(whole.complete());
  EXPECT_TRUE(whole.gaps().empty());
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
    ASSERT_TRUE(server_->impl().Holds("e1", 10));
    change();
    EXPECT_FALSE(Barrier(Upto(11), Proceeding(300ms)).satisfied());
    EXPECT_FALSE(server_->impl().Holds("e1", 10));
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
  EXPECT_FALSE(server_->impl().Holds("e1", 10));
  fake_->Set(answer);
  EXPECT_TRUE(Barrier(Upto(10), Proceeding(20s)).satisfied());
}

// A server whose answer is held on its way while a push says that its data were replaced: it speaks of those before.
struct HeldAnswer {
  std::atomic<bool> held{false};
  std::atomic<bool> let_go{false};
  std::atomic<bool> replaced{false};
};

class OvertakenAnswer : public LogTest {
 protected:
  OvertakenAnswer() {
    SettingWords words;
    words.free_path_ttl = 60s;
    Set(words);
    log_->Move(10);
    Hold(Visibility::Visible());
  }

  // From now on this is the answer that is held. It keeps what it needs itself: the asker may still ask as a test ends.
  void Hold(const Visibility& answer) {
    fake_->Set([answer, log = log_, state = state_](Span<const WriteId> ids, Server& server) -> Answers {
      std::vector<Visibility> answers(ids.size(), answer);
      if (!state->held.exchange(true)) {
        while (!state->let_go) std::this_thread::sleep_for(1ms);
      } else if (state->replaced) {
        return log->Judge(ids, server);
      }
      server.Applied("i1", "e1", {{"e1", 10}});
      return answers;
    });
  }

  // The data are replaced while the answer is held, and then it comes.
  void Replace(std::uint64_t to) {
    Until([&] { return state_->held.load(); });
    log_->Become("i1", "e1", to);
    state_->replaced = true;
    server_->Reset();
    state_->let_go = true;
  }

  const std::shared_ptr<HeldAnswer> state_ = std::make_shared<HeldAnswer>();
};

// BAR-33: dropped whole, the verdicts, too.
TEST_F(OvertakenAnswer, LetsNothingPassAndIsAskedForAgain) {
  auto waiting = BarrierAsync(Upto(10), Proceeding(60s));
  Replace(5);
  Until([&] { return fake_->asked >= 3; });
  EXPECT_EQ(waiting.wait_for(0ms), std::future_status::timeout);
  EXPECT_FALSE(server_->impl().Holds("e1", 10));
  log_->Move(10);
  EXPECT_TRUE(waiting.get().satisfied());
}

TEST_F(OvertakenAnswer, LeavesNoProof) {
  auto waiting = BarrierAsync(Upto(10), Proceeding(60s));
  Replace(10);
  EXPECT_TRUE(waiting.get().satisfied());
  EXPECT_GE(fake_->asked, 2) << "the verdict is that of a second question";
  server_->Reset();
  EXPECT_FALSE(server_->impl().Holds("e1", 10));
  EXPECT_TRUE(Barrier(Upto(10), Proceeding(20s)).satisfied());
  EXPECT_TRUE(server_->impl().Holds("e1", 10)) << "what is asked for after a reset is believed";
}

// And a look that was answered so looks again, rather than fail by what was before.
TEST_F(OvertakenAnswer, DoesNotRefuseEither) {
  Hold(Visibility::Unproven("of the data before"));
  auto waiting = BarrierAsync(Upto(10), Proceeding(60s));
  Replace(10);
  EXPECT_TRUE(waiting.get().satisfied());
}

// BAR-33: twice at once, then at the pace of a poll.
TEST_F(LogTest, AServerWhoseAnswersAreAllOvertakenIsAskedAtThePaceOfAPoll) {
  SettingWords words;
  words.poll = 20ms;
  Set(words);
  log_->Move(10);
  fake_->Set([](Span<const WriteId> ids, Server& server) -> Answers {
    server.Reset();
    return std::vector<Visibility>(ids.size(), Visibility::Visible());
  });
  const int before = fake_->asked;
  EXPECT_FALSE(Barrier(Upto(10), Proceeding(500ms)).satisfied());
  EXPECT_GE(fake_->asked - before, 4);
  EXPECT_LE(fake_->asked - before, 2 * (500 / 20 + 2)) << "no loop";
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

}  // namespace
}  // namespace antipode::testing
