// Six races at a barrier's end, by threads that run at once; under the thread sanitizer a million times each
// (scripts/races-cpp), here as often as a change can wait (BAR-32, BAR-33, BAR-63; spec/tla/Reopen.tla).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "antipode/settings.h"
#include "antipode/testing/isolated.h"
#include "races/race.h"
#include "races/turns.h"

namespace antipode::testing {
namespace {

using Actors = std::pair<std::function<void()>, std::function<void()>>;

int Times() {
  const char* said = std::getenv("RACES");
  return said == nullptr ? 1'000 : std::atoi(said);
}

class RacesTest : public ::testing::Test {
 protected:
  RacesTest() {
    SettingWords words;  // proofs do not age: how busy the machine is decides nothing
    words.free_path_ttl = std::chrono::hours(1);
    words.reconnect = std::chrono::hours(1);
    EXPECT_TRUE(Configure(words).ok());
    store_ = MakeRaceStore();
  }

  void Run(const std::function<Actors(Race&)>& begin) {
    Turns turns(1);
    for (int i = 0, times = Times(); i < times; ++i) {
      Race race(*store_);
      const Actors actors = begin(race);
      turns.Run(actors.first, actors.second);
      const std::string found = race.Judge();
      ASSERT_EQ(found, "") << "race " << i;
    }
  }

  Isolated isolated_;
  std::shared_ptr<Store> store_;
};

TEST_F(RacesTest, SettleAndSettle_BAR_32) {
  Run([](Race& race) -> Actors {
    race.Park();
    return {[&] { race.Ask(0); }, [&] { race.Ask(1); }};
  });
}

// The last but one is settled while its server is led elsewhere; the last one is settled then.
TEST_F(RacesTest, SettleAndReset_BAR_33_BAR_63) {
  Run([](Race& race) -> Actors {
    race.Park();
    return {[&] { race.Ask(0); },
            [&] {
              race.Replace(0);
              race.Ask(1);
            }};
  });
}

// The last one is settled while another one is led elsewhere, and the deadline comes.
TEST_F(RacesTest, SettleAndDeadline_BAR_63) {
  Run([](Race& race) -> Actors {
    race.Park();
    race.Ask(1);
    return {[&] { race.Ask(0); },
            [&] {
              race.Replace(1);
              race.GiveUp();
            }};
  });
}

// Who compares finds what does not stand and opens it; it is settled, so that another one compares, while its server is
// led elsewhere again.
TEST_F(RacesTest, ResetAndScan_BAR_63) {
  Run([](Race& race) -> Actors {
    race.Park();
    race.Ask(0);
    race.Replace(0);
    return {[&] {
              race.Ask(1);
              race.Replace(0);
              race.Ask(1);
            },
            [&] {
              race.Replace(1);
              race.Ask(0);
              race.Ask(0);
            }};
  });
}

TEST_F(RacesTest, SettleAndCancel_BAR_32) {
  Run([](Race& race) -> Actors {
    race.Park();
    race.Ask(1);
    race.Replace(1);
    return {[&] { race.Ask(0); }, [&] { race.Cancel(); }};
  });
}

// What is parked first may be settled while the others are parked.
TEST_F(RacesTest, ParkAndSettle_BAR_63) {
  Run([](Race& race) -> Actors {
    return {[&] { race.Park(); },
            [&] {
              race.Ask(0);
              race.Replace(0);
              race.Ask(1);
            }};
  });
}

}  // namespace
}  // namespace antipode::testing
