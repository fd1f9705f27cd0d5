// What arrives, on a real broker: one scope a message, from the message's own header, and what goes back (SCOPE-6,
// PROP-17, BAR-45, TRUST-3, TRUST-4, TRUST-28, TRUST-31, PROP-26).
#include <set>
#include <string>
#include <thread>

#include "region.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ConsumingTest = RabbitTest;

const char* const kOne = "1~acl..0-1.7";

Headers Stamped(const std::string& text) { return {{"antipode-lineage", text}}; }

// Takes a queue's next message.
Envelope Next(Connection& mq) {
  Envelope envelope;
  const Reply reply = mq.ConsumeMessage(&envelope, 10s);
  EXPECT_TRUE(reply.ok()) << reply.words();
  return envelope;
}

BarrierResult WaitOrRedeliver(std::chrono::duration<double> timeout) {
  return Barrier(BarrierOptions().Timeout(timeout).OnTimeout(Policy::kRedeliver));
}

TEST_F(ConsumingTest, EachMessageHasAScopeOfItsOwn) {  // SCOPE-6
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  for (const char* text : {kOne, kText}) a_.own().Publish("", queue, "x", Stamped(text));
  a_.own().Publish("", queue, "x");
  const Reply consuming = mq.BasicConsume(1, queue);
  ASSERT_TRUE(consuming.ok());
  EXPECT_FALSE(consuming.words().empty());
  ScopePtr before;
  for (const char* text : {kOne, kText, "1"}) {
    const Envelope envelope = Next(mq);
    const Scope scope = ScopeOf(envelope);
    EXPECT_TRUE(before == nullptr || before->closed());
    EXPECT_EQ(*Serialize(), text);
    EXPECT_EQ(scope->kind(), ScopeKind::kMessage);
    Append(*WriteId::Position("late", "e", 1));
    before = scope.shared();
    ASSERT_TRUE(mq.BasicAck(envelope).ok());
  }
  EXPECT_EQ(CurrentScope(), nullptr);
  EXPECT_TRUE(Until([&] { return a_.own().Count(queue) == 0; }));
}

TEST_F(ConsumingTest, WhatIsPublishedInAMessagesScopeCarriesItsLineage) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  const std::string answers = a_.Queue();
  a_.own().Publish("", queue, "x", Stamped("1~acl..0-1.7~blog..0-1.42"));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  const Envelope envelope = Next(mq);
  const Scope scope = ScopeOf(envelope);
  RemoveStore("acl");
  // With the properties that it came with: what was removed does not come back by them.
  ASSERT_TRUE(mq.BasicPublish(1, "", answers, "answer", &envelope->message.properties).ok());
  EXPECT_THAT(a_.own().Get(answers).headers, ElementsAre(Pair("antipode-lineage", kText)));
}

TEST_F(ConsumingTest, PulledMessagesAreTakenLikewise) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  Envelope envelope;
  ASSERT_TRUE(mq.BasicGet(1, queue, &envelope).ok());
  EXPECT_FALSE(envelope);
  const std::string body(300000, 'b');
  a_.own().Publish("", queue, body, Stamped(kOne));
  ASSERT_TRUE(Until([&] { return mq.BasicGet(1, queue, &envelope).ok() && envelope; }));
  EXPECT_TRUE(envelope.body() == body);
  EXPECT_EQ(envelope.Header("antipode-lineage"), kOne);
  EXPECT_EQ(envelope.Header("no-such"), "");
  {
    const Scope scope = ScopeOf(envelope);
    EXPECT_EQ(scope.lineage().Serialize(), kOne);
  }
  ASSERT_TRUE(mq.BasicAck(envelope).ok());
  EXPECT_EQ(a_.own().Count(queue), 0);
}

TEST_F(ConsumingTest, GetsAmongDeliveries) {  // their frames come on one channel
  Connection mq = a_.Wrapped();
  const std::string consumed = a_.Queue();
  const std::string pulled = a_.Queue();
  for (int number = 0; number < 50; ++number) {
    a_.own().Publish("", consumed, "c" + std::to_string(number));
    a_.own().Publish("", pulled, "p" + std::to_string(number));
  }
  ASSERT_TRUE(Until([&] { return a_.own().Count(pulled) == 50; }));
  ASSERT_TRUE(mq.BasicConsume(1, consumed).ok());
  for (int number = 0; number < 50; ++number) {
    Envelope envelope;
    ASSERT_TRUE(mq.BasicGet(1, pulled, &envelope, true).ok());
    EXPECT_EQ(envelope.body(), "p" + std::to_string(number));
  }
  for (int number = 0; number < 50; ++number) EXPECT_EQ(Next(mq).body(), "c" + std::to_string(number));
}

TEST_F(ConsumingTest, TrustDecidesWhatIsTaken) {
  const std::string queue = a_.Queue();
  const auto taken = [&](const std::string& text, Options options) {
    a_.own().Publish("", queue, "x", Stamped(text));
    Connection mq = a_.Wrapped(std::move(options));
    Envelope envelope;
    EXPECT_TRUE(Until([&] { return mq.BasicGet(1, queue, &envelope, true).ok() && envelope; }));
    return ScopeOf(envelope).lineage();
  };
  const Lineage known = *Lineage::Deserialize(kOne);
  const auto with = [](bool in) {
    Options options(kStore);
    options.LineageIn(in);
    return options;
  };
  EXPECT_EQ(taken(kOne, kStore), known);
  EXPECT_TRUE(taken(kOne, with(false)).empty());
  SettingWords words;
  words.edge = true;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_TRUE(taken(kOne, kStore).empty());  // TRUST-4
  EXPECT_EQ(taken(kOne, with(true)), known);
  words.edge = false;
  words.trust = Trust::kNone;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_TRUE(taken(kOne, kStore).empty());
}

TEST_F(ConsumingTest, AStampedQueuesMessageWithoutALineageIsIncomplete) {
  Connection mq = a_.Wrapped(Options(kStore).Stamped());
  const std::string queue = a_.Queue();
  a_.own().Publish("", queue, "x");
  a_.own().Publish("", queue, "x", Stamped("1"));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  {
    const Envelope envelope = Next(mq);
    {
      const Scope scope = ScopeOf(envelope);
      EXPECT_FALSE(scope.lineage().IsComplete());
      ASSERT_EQ(scope->gaps().size(), 1U);
      EXPECT_EQ(scope->gaps().front().reason, "malformed");
    }
    SettingWords edge;
    edge.edge = true;
    ASSERT_TRUE(Configure(edge).ok());
    EXPECT_TRUE(ScopeOf(envelope).lineage().IsComplete());  // where none would be taken, none is missing
    edge.edge = false;
    ASSERT_TRUE(Configure(edge).ok());
  }
  EXPECT_TRUE(ScopeOf(Next(mq)).lineage().empty());
}

TEST_F(ConsumingTest, ModeOffPassesOnWhatCameInAndAddsNothing) {  // PROP-26
  SettingWords off;
  off.mode = Mode::kOff;
  ASSERT_TRUE(Configure(off).ok());
  Connection mq = a_.Wrapped(Options(kStore).Track().Stamped());
  const std::string queue = a_.Queue();
  const std::string onward = a_.Queue();
  a_.own().Publish("", queue, "x", Stamped(kOne));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  const Envelope envelope = Next(mq);
  const Scope scope = ScopeOf(envelope);
  ASSERT_TRUE(mq.BasicPublish(1, "", onward, "x").ok());
  const PlainMessage sent = a_.own().Get(onward);
  EXPECT_THAT(sent.headers, ElementsAre(Pair("antipode-lineage", kOne)));
  EXPECT_EQ(sent.message_id, "");
}

TEST_F(ConsumingTest, WhatTheBrokerEndsIsSaid) {
  Connection mq = a_.Wrapped();
  const std::string queue = NewName("gone");
  a_.own().Declare(queue);
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  EXPECT_EQ(mq.BasicConsume(1, "no-such-queue").code(), 404);
  Envelope envelope;
  EXPECT_EQ(mq.ConsumeMessage(&envelope, 1s).code(), 0) << "the application was told already";
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  a_.Delete(queue);
  const Reply ended = mq.ConsumeMessage(&envelope, 10s);
  EXPECT_FALSE(ended.ok());
  EXPECT_THAT(ended.words(), HasSubstr("cancelled"));
}

// What goes back

class RedeliverTest : public RabbitTest {
 protected:
  // A message that depends on a write which does not come to B.
  void Publish(const std::string& queue, const std::string& body = "42") {
    blog_.Freeze("b");
    Connection mq = a_.Wrapped();
    Scope scope;
    ASSERT_TRUE(posts_.Set("post:42", "hi").ok());
    ASSERT_TRUE(mq.BasicPublish(1, "", queue, body).ok());
  }

  MemoryStore blog_{"blog", {"a", "b"}};
  MemoryClient posts_ = blog_.Client("a");
  MemoryClient posts_b_ = blog_.Client("b");
};

TEST_F(RedeliverTest, AMessageGoesBackAndComesAgain) {  // BAR-45
  const std::string queue = a_.Queue();
  Publish(queue);
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(200ms));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  std::vector<std::chrono::steady_clock::time_point> tries;
  bool done = false;
  while (!done) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    EXPECT_EQ(envelope->redelivered != 0, !tries.empty());
    tries.push_back(std::chrono::steady_clock::now());
    if (tries.size() == 3) blog_.Heal("b");
    const Scope scope = ScopeOf(envelope);
    const BarrierResult result = WaitOrRedeliver(tries.size() < 3 ? 50ms : 5s);
    if (result.error() == nullptr) {
      done = true;
      ASSERT_TRUE(mq.BasicAck(envelope).ok());
      continue;
    }
    ASSERT_EQ(result.error()->code, ErrorCode::kRedeliver);
    ASSERT_TRUE(mq.GiveBack(envelope, *result.error()).ok());
    const Result<void> twice = mq.GiveBack(envelope, *result.error());
    ASSERT_FALSE(twice.ok());
    EXPECT_THAT(twice.error().message, HasSubstr("already"));
    EXPECT_THAT(mq.BasicAck(envelope).words(), HasSubstr("would be lost"));  // PROP-36: behind the block
  }
  ASSERT_EQ(tries.size(), 3U);
  for (std::size_t at = 1; at < tries.size(); ++at) EXPECT_GE(tries[at] - tries[at - 1], 190ms);
  EXPECT_TRUE(Until([&] { return a_.own().Count(queue) == 0; }));
}

TEST_F(RedeliverTest, WhatGoesBackIsNotSettledForGood) {  // PROP-36
  const std::string queue = a_.Queue();
  for (const char* const body : {"1", "2", "3"}) Publish(queue, body);
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(10min));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  for (int count = 0; count < 3; ++count) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    const Scope scope = ScopeOf(envelope);
    const BarrierResult result = WaitOrRedeliver(20ms);
    ASSERT_NE(result.error(), nullptr);
    ASSERT_TRUE(mq.GiveBack(envelope, *result.error()).ok());
    EXPECT_THAT(mq.BasicNack(1, envelope->delivery_tag, true, false).words(), HasSubstr("would be lost"));
    EXPECT_THAT(mq.BasicReject(1, envelope->delivery_tag, false).words(), HasSubstr("would be lost"));
  }
  ASSERT_TRUE(mq.BasicAck(1, 0, true).ok());  // all: none of these, nor their copies
  std::multiset<std::string> seen;
  while (seen.size() < 3) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    seen.emplace(envelope.body());
  }
  EXPECT_THAT(seen, ElementsAre("1", "2", "3"));
}

TEST_F(RedeliverTest, AllIsAlsoWhatAStreamHasGiven) {  // PROP-36
  const std::string queue = a_.Queue();
  const std::string exchange = a_.Exchange("fanout");
  const std::string stream = a_.NewTap(exchange, "").queue;
  Publish(queue, "goes back");
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(10min));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  {
    const Envelope envelope = Next(mq);
    const Scope scope = ScopeOf(envelope);
    const BarrierResult result = WaitOrRedeliver(20ms);
    ASSERT_NE(result.error(), nullptr);
    ASSERT_TRUE(mq.GiveBack(envelope, *result.error()).ok());
  }
  ASSERT_TRUE(mq.BasicQos(1, 1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, stream).ok());
  a_.own().Publish(exchange, "", "first");
  ASSERT_EQ(Next(mq).body(), "first");
  a_.own().Publish(exchange, "", "second");  // behind the first: the two together would come at once
  ASSERT_TRUE(mq.BasicAck(1, 0, true).ok());
  std::multiset<std::string> seen;
  while (seen.size() < 2) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    seen.emplace(envelope.body());
  }
  EXPECT_THAT(seen, ElementsAre("goes back", "second"));
}

TEST_F(RedeliverTest, PoisonLimitsHold) {
  const std::string dead = a_.Queue();
  const std::string queue = a_.Queue({{"x-queue-type", "quorum"},
                                      {"x-delivery-limit", "2"},
                                      {"x-dead-letter-exchange", ""},
                                      {"x-dead-letter-routing-key", dead}});
  Publish(queue);
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(50ms));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  for (int count = 0; count < 3; ++count) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    const Scope scope = ScopeOf(envelope);
    const BarrierResult result = WaitOrRedeliver(20ms);
    ASSERT_NE(result.error(), nullptr);
    ASSERT_TRUE(mq.GiveBack(envelope, *result.error()).ok());
  }
  Envelope none;
  EXPECT_TRUE(mq.ConsumeMessage(&none, 300ms).timed_out());
  const PlainMessage letter = a_.own().Get(dead);
  EXPECT_EQ(letter.body, "42");
  EXPECT_THAT(letter.headers, ::testing::Contains(Pair("antipode-lineage", ::testing::StartsWith("1~blog.."))));
}

TEST_F(RedeliverTest, OtherMessagesAreConsumedMeanwhile) {
  const std::string queue = a_.Queue();
  Publish(queue, "waits");
  a_.own().Publish("", queue, "passes");
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(300ms));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  std::vector<std::string> seen;
  while (seen.size() < 3) {
    const Envelope envelope = Next(mq);
    ASSERT_TRUE(envelope);
    seen.emplace_back(envelope.body());
    if (seen.size() == 3) blog_.Heal("b");
    const Scope scope = ScopeOf(envelope);
    const BarrierResult result = WaitOrRedeliver(seen.size() < 3 ? 20ms : 5s);
    if (result.error() != nullptr) {
      ASSERT_TRUE(mq.GiveBack(envelope, *result.error()).ok());
    } else {
      ASSERT_TRUE(mq.BasicAck(envelope).ok());
    }
  }
  EXPECT_THAT(seen, ElementsAre("waits", "passes", "waits"));
}

TEST_F(RedeliverTest, WhereAMessageCannotGoBackTheBarrierSaysSo) {  // BAR-45
  const auto said = [&](const std::function<void(Connection&, const Envelope&)>& act, bool no_ack = false) {
    const std::string queue = a_.Queue();
    Publish(queue);
    Connection mq = a_.Wrapped();
    ConsumeOptions options;
    options.no_ack = no_ack;
    EXPECT_TRUE(mq.BasicConsume(1, queue, options).ok());
    const Envelope envelope = Next(mq);
    const Scope scope = ScopeOf(envelope);
    act(mq, envelope);
    const BarrierResult result = WaitOrRedeliver(20ms);
    EXPECT_NE(result.error(), nullptr);
    if (result.error() == nullptr) return std::string();
    EXPECT_EQ(result.error()->code, ErrorCode::kConfiguration);
    EXPECT_FALSE(mq.GiveBack(envelope, *result.error()).ok());
    return result.error()->message;
  };
  EXPECT_THAT(said([](Connection&, const Envelope&) {}, true), HasSubstr("auto_ack"));
  EXPECT_THAT(said([](Connection& mq, const Envelope& envelope) { mq.BasicAck(envelope).ok(); }),
              HasSubstr("acknowledged"));
  EXPECT_THAT(said([](Connection& mq, const Envelope&) { mq.BasicAck(1, 0, true).ok(); }), HasSubstr("acknowledged"));
  EXPECT_THAT(
      said([](Connection& mq, const Envelope& envelope) { mq.BasicReject(1, envelope->delivery_tag, false).ok(); }),
      HasSubstr("rejected"));
  EXPECT_THAT(said([](Connection& mq, const Envelope&) { mq.BasicRecover(1).ok(); }), HasSubstr("recovered"));
  const Scope plain;
  EXPECT_THAT(WaitOrRedeliver(20ms).error()->message, HasSubstr("message"));
}

TEST_F(RedeliverTest, WhatHasEndedCannotGoBack) {
  const std::string queue = a_.Queue();
  Publish(queue);
  Connection mq = a_.Wrapped();
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  const Envelope envelope = Next(mq);
  ScopePtr ended;
  {
    const Scope scope = ScopeOf(envelope);
    ended = scope.shared();
  }
  const Activation again(ended);
  const BarrierResult result = WaitOrRedeliver(20ms);
  ASSERT_NE(result.error(), nullptr);
  EXPECT_THAT(result.error()->message, HasSubstr("has ended"));
}

TEST_F(RedeliverTest, AnAcknowledgementOfSeveralGivesBackWhatWaitsAmongThem) {
  const std::string queue = a_.Queue();
  Publish(queue, "first");
  a_.own().Publish("", queue, "second");
  Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(30s));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  {
    const Envelope first = Next(mq);
    const Scope scope = ScopeOf(first);
    ASSERT_TRUE(mq.GiveBack(first, *WaitOrRedeliver(20ms).error()).ok());
  }
  const Envelope second = Next(mq);
  EXPECT_EQ(second.body(), "second");
  ASSERT_TRUE(mq.BasicAck(second, true).ok());
  const Envelope again = Next(mq);
  EXPECT_EQ(again.body(), "first");
  EXPECT_TRUE(again->redelivered);
}

TEST_F(RedeliverTest, AChannelThatEndsMeanwhileGivesTheMessageBackItself) {
  const std::string queue = a_.Queue();
  Publish(queue);
  {
    Connection mq = a_.Wrapped(Options(kStore).RedeliverDelay(30s));
    ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
    const Envelope envelope = Next(mq);
    const Scope scope = ScopeOf(envelope);
    ASSERT_TRUE(mq.GiveBack(envelope, *WaitOrRedeliver(20ms).error()).ok());
  }
  EXPECT_TRUE(Until([&] { return a_.own().Count(queue) == 1; }));
}

}  // namespace
}  // namespace antipode::rabbitmq
