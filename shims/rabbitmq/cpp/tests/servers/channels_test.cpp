// A channel that is opened again has nothing of the one before it, whose number it has; and what is left of a
// connection that was given up (SHIM-2, SHIM-6, BAR-45).
#include <string>
#include <vector>

#include "region.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::HasSubstr;
using ChannelsTest = RabbitTest;

Envelope Next(Connection& mq) {
  Envelope envelope;
  const Reply reply = mq.ConsumeMessage(&envelope, 10s);
  EXPECT_TRUE(reply.ok()) << reply.words();
  return envelope;
}

// Consumes a queue of three messages and takes the first of them, with the others already here.
Envelope TakeFirstOfThree(Connection& mq, Region& region, const std::string& queue) {
  for (const char* body : {"one", "two", "three"}) region.own().Publish("", queue, body);
  EXPECT_TRUE(Until([&] { return region.own().Count(queue) == 3; }));
  EXPECT_TRUE(mq.BasicConsume(1, queue).ok());
  EXPECT_TRUE(Until([&] { return region.own().Count(queue) == 0; }));
  Envelope first = Next(mq);
  EXPECT_EQ(first.body(), "one");
  Envelope none;
  EXPECT_FALSE(mq.TakeReturned(&none));  // reads what is there
  return first;
}

// Takes them all again; the tags are the new channel's own.
void TakeAllAgain(Connection& mq, std::uint64_t first_tag) {
  std::vector<std::string> bodies;
  for (std::uint64_t number = 0; number < 3; ++number) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    EXPECT_TRUE(envelope->redelivered) << envelope.body();
    EXPECT_EQ(envelope->delivery_tag, first_tag + number);
    bodies.emplace_back(envelope.body());
    ASSERT_TRUE(mq.BasicAck(envelope).ok());
  }
  EXPECT_THAT(bodies, ::testing::UnorderedElementsAre("one", "two", "three"));
  Envelope none;
  EXPECT_TRUE(mq.ConsumeMessage(&none, 50ms).timed_out());
}

TEST_F(ChannelsTest, AConfirmationOfTheChannelBeforeConfirmsNothing) {
  Link link("a");
  const std::string queue = a_.Queue();
  auto mq = Connect(link.url(), Options(kStore).Track().CallTimeout(1s));
  ASSERT_TRUE(mq.ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  link.HoldAnswers();
  Scope scope;
  EXPECT_EQ(mq->BasicPublish(1, "", queue, "late").outcome(), Outcome::kUnknown);
  link.Heal();
  ASSERT_TRUE(Heard(*mq));  // its confirmation, too late
  ASSERT_TRUE(mq->ChannelClose(1).ok());
  ASSERT_TRUE(mq->ChannelOpen(1).ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  link.Silence();
  const Published next = mq->BasicPublish(1, "", queue, "next");
  EXPECT_EQ(next.outcome(), Outcome::kUnknown) << "the broker has not even got it";
  EXPECT_TRUE(scope->Known().empty());
  EXPECT_EQ(scope->pending().size(), 2U);
}

TEST_F(ChannelsTest, MessagesOfTheChannelBeforeAreNotGiven) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  const Envelope kept = TakeFirstOfThree(mq, a_, queue);
  ASSERT_TRUE(mq.ChannelClose(1).ok());
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  TakeAllAgain(mq, 1);
  EXPECT_EQ(a_.own().Count(queue), 0);
}

TEST_F(ChannelsTest, AMessageOfTheChannelBeforeSettlesNoOther) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  const Envelope kept = TakeFirstOfThree(mq, a_, queue);
  ASSERT_TRUE(mq.ChannelClose(1).ok());
  EXPECT_FALSE(mq.BasicAck(kept).ok());
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  const Envelope now = Next(mq);
  ASSERT_EQ(now->delivery_tag, kept->delivery_tag);
  for (const bool multiple : {false, true}) {
    const Reply refused = mq.BasicAck(kept, multiple);
    EXPECT_EQ(refused.status(), AMQP_STATUS_INVALID_PARAMETER);
    EXPECT_THAT(refused.words(), HasSubstr("its channel has ended"));
  }
  ASSERT_TRUE(mq.ChannelClose(1).ok());
  EXPECT_TRUE(Until([&] { return a_.own().Count(queue) == 3; })) << "one was settled that nobody has handled";
}

TEST_F(ChannelsTest, AMessageOfAnotherConnectionSettlesNone) {
  Connection mq = a_.Wrapped();
  Connection other = a_.Wrapped();
  const std::string queue = a_.Queue();
  const Envelope first = TakeFirstOfThree(mq, a_, queue);
  const std::string beside = a_.Queue();
  a_.own().Publish("", beside, "x");
  ASSERT_TRUE(other.BasicConsume(1, beside).ok());
  const Envelope same_tag = Next(other);
  ASSERT_EQ(same_tag->delivery_tag, first->delivery_tag);
  EXPECT_FALSE(mq.BasicAck(same_tag).ok());
  EXPECT_TRUE(mq.BasicAck(first).ok());
}

TEST_F(ChannelsTest, WhatWasRecoveredIsGivenOnce) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  const Envelope kept = TakeFirstOfThree(mq, a_, queue);
  ASSERT_TRUE(mq.BasicRecover(1).ok());
  const Reply refused = mq.BasicAck(kept);
  EXPECT_EQ(refused.status(), AMQP_STATUS_INVALID_PARAMETER);
  EXPECT_THAT(refused.words(), HasSubstr("recovered"));
  TakeAllAgain(mq, 4);  // the same channel counts on
}

TEST_F(ChannelsTest, WhatTheBrokerHasForgottenIsGivenAllTheSame) {  // consumed with no_ack: nobody else will give it
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  for (const char* body : {"one", "two"}) a_.own().Publish("", queue, body);
  ConsumeOptions forgotten;
  forgotten.no_ack = true;
  ASSERT_TRUE(mq.BasicConsume(1, queue, forgotten).ok());
  EXPECT_EQ(Next(mq).body(), "one");
  ASSERT_TRUE(mq.BasicRecover(1).ok());
  ASSERT_TRUE(mq.ChannelClose(1).ok());
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  const Envelope two = Next(mq);
  EXPECT_EQ(two.body(), "two");
  EXPECT_FALSE(mq.GiveBack(two, Error{ErrorCode::kRedeliver, "AP201", "too early"}).ok());
}

TEST_F(ChannelsTest, TheEndOfTheChannelBeforeIsSaidNoMore) {
  Connection mq = a_.Wrapped();
  ASSERT_EQ(mq.BasicPublish(1, "no-such-exchange", "", "x").outcome(), Outcome::kSent);
  const std::string queue = a_.Queue();
  ASSERT_TRUE(Until([&] { return mq.BasicPublish(1, "", queue, "x").outcome() == Outcome::kNotSent; }));
  a_.own().Purge(queue);
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  Envelope envelope;
  const Reply reply = mq.ConsumeMessage(&envelope, 100ms);
  EXPECT_TRUE(reply.timed_out()) << reply.words();
  EXPECT_EQ(mq.BasicPublish(1, "", queue, "x").outcome(), Outcome::kSent);
  EXPECT_EQ(Next(mq).body(), "x");
}

TEST_F(ChannelsTest, AChannelIsOpenedAgainAfterAnEndThatNobodyHasReadYet) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  ASSERT_EQ(mq.BasicPublish(1, "no-such-exchange", "", "x").outcome(), Outcome::kSent);
  ASSERT_TRUE(Heard(mq));
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  EXPECT_EQ(mq.BasicPublish(1, "", queue, "x").outcome(), Outcome::kSent);
  EXPECT_EQ(a_.own().Get(queue).body, "x");
}

TEST_F(ChannelsTest, NoChannelIsOpenedOnAConnectionThatWasGivenUp) {
  Link link("a");
  auto mq = Connect(link.url(), Options(kStore).CallTimeout(400ms));
  ASSERT_TRUE(mq.ok());
  link.Silence();
  EXPECT_FALSE(mq->TxSelect(1).ok());
  link.Heal();
  const Reply reply = mq->ChannelOpen(2);
  EXPECT_FALSE(reply.ok());
  EXPECT_THAT(reply.words(), HasSubstr("did not answer within 400 ms"));
}

}  // namespace
}  // namespace antipode::rabbitmq
