// What counts as a server's silence (BAR-26, BAR-61).
#include "engine/reachability.h"

#include <gtest/gtest.h>

#include "engine/fakes.h"

namespace antipode::testing {
namespace {

class ReachabilityTest : public EngineTest {
 protected:
  ReachabilityTest() {
    SettingWords words;
    words.replica_out_after = 10s;
    Set(words);
  }
  Reachability reach_;
  const TimePoint now_ = Clock::now();
};

// The machine was paused while a question was under way.
TEST_F(ReachabilityTest, HowLongThisProcessStoodStillIsNoSilenceOfAServer_BAR_61) {
  reach_.Failed(now_, now_ + 10min, "reset");
  EXPECT_TRUE(reach_.down());
  EXPECT_FALSE(reach_.IsOut(now_ + 10min));
}

TEST_F(ReachabilityTest, NorIsWhatLiesBetweenTwoSilences_BAR_61) {
  reach_.Failed(now_, now_, "reset");
  reach_.Failed(now_ + 1s, now_ + 10min, "reset");
  EXPECT_FALSE(reach_.IsOut(now_ + 10min));
}

TEST_F(ReachabilityTest, AServerThatIsAskedAgainAndAgainInVainIsOut_BAR_26) {
  for (int second = 0; second <= 10; ++second) {
    const TimePoint asked_at = now_ + std::chrono::seconds(second);
    EXPECT_EQ(reach_.IsOut(asked_at), second == 10);
    reach_.Failed(asked_at, asked_at + 100ms, "reset");
  }
  EXPECT_TRUE(reach_.IsOut(now_ + 10100ms));
  EXPECT_FALSE(reach_.IsOut(now_ + 10min)) << "nobody has asked lately";
  reach_.Answered();
  EXPECT_FALSE(reach_.IsOut(now_ + 10100ms));
}

}  // namespace
}  // namespace antipode::testing
