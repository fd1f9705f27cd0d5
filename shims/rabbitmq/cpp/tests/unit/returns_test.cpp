// The books of what goes back to its queue (BAR-45).
#include "returns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace antipode::rabbitmq {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<DeliveredState> Message(std::uint64_t tag) {
  return std::make_shared<DeliveredState>(nullptr, amqp_channel_t{1}, tag, 0);
}

TEST(Returns, NothingIsKeptOfWhatHasGoneBack) {
  Returns returns;
  const auto now = Returns::Clock::now();
  for (std::uint64_t tag = 1; tag <= 1000; ++tag) {
    returns.Opened(Message(tag));
    returns.GiveBack(tag, now);
    EXPECT_THAT(returns.TakeDue(now), ElementsAre(tag));
  }
  EXPECT_EQ(returns.kept(), 0U);
}

TEST(Returns, WhatWaitsIsKept) {
  Returns returns;
  const auto now = Returns::Clock::now();
  const auto first = Message(1);
  const auto second = Message(2);
  returns.Opened(first);
  returns.Opened(second);
  returns.GiveBack(1, now + std::chrono::hours(1));
  EXPECT_EQ(returns.kept(), 2U);
  EXPECT_THAT(returns.Settling(2, true), ElementsAre(1U));
  EXPECT_EQ(returns.kept(), 0U);
  EXPECT_NE(second->Refusal(), "");
}

TEST(Returns, WhatGoesBackIsKnownToWhoeverAcknowledgesIt_PROP_36) {
  Returns returns;
  const auto now = Returns::Clock::now();
  for (std::uint64_t tag = 1; tag <= 3000; ++tag) returns.GiveBack(tag, now);
  EXPECT_TRUE(returns.GoesBack(3000)) << "before it has gone back";
  EXPECT_TRUE(returns.GoesBack(1)) << "however many have come since";
  EXPECT_EQ(returns.TakeDue(now).size(), 3000U);
  EXPECT_TRUE(returns.GoesBack(3000)) << "and when it has";
  EXPECT_FALSE(returns.GoesBack(1)) << "of those before the last thousand nothing is kept";
  EXPECT_FALSE(returns.GoesBack(3001));
  returns.Forget("the channel was closed");
  EXPECT_FALSE(returns.GoesBack(3000)) << "its tags begin anew";
}

TEST(Returns, AllIsWhatWasHandedOutOnceSomethingHasGoneBack_PROP_36) {
  Returns returns;
  const auto now = Returns::Clock::now();
  const auto first = Message(1);
  const auto second = Message(2);
  returns.Opened(first);
  returns.Opened(second);
  EXPECT_EQ(returns.LastOfAll(), 0U) << "nothing has gone back: as the application said it";
  returns.GiveBack(1, now + std::chrono::hours(1));
  EXPECT_EQ(returns.LastOfAll(), 2U);
  EXPECT_THAT(returns.Settling(0, true), ElementsAre(1U));
  EXPECT_EQ(returns.LastOfAll(), Returns::kNothing) << "the copy of the first may have come again";
  returns.Forget("the channel was closed");
  EXPECT_EQ(returns.LastOfAll(), 0U);
}

}  // namespace
}  // namespace antipode::rabbitmq
