// What leaves, on a real broker: the lineage, confirms, what comes back, and what nobody knows (SHIM-2, SHIM-6,
// SHIM-17, PROP-17, PROP-19, PROP-20, SCOPE-14, SCOPE-17).
#include <chrono>
#include <string>
#include <thread>

#include "antipode/shim/write.h"
#include "octets.h"
#include "region.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using PublishingTest = RabbitTest;

TEST_F(PublishingTest, WhatLeavesCarriesTheScopesLineage) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  ASSERT_TRUE(mq.BasicPublish(1, "", queue, "before any lineage is known").ok());
  EXPECT_THAT(a_.own().Get(queue).headers, ElementsAre());
  {
    Scope scope;
    Append(BlogWrite());
    ASSERT_TRUE(mq.BasicPublish(1, "", queue, "body").ok());
    EXPECT_EQ(scope->lineage(), Lineage(BlogWrite()));  // no identifier of the message's own (PROP-20)
  }
  ASSERT_TRUE(mq.BasicPublish(1, "", queue, "outside any scope").ok());
  const PlainMessage sent = a_.own().Get(queue);
  EXPECT_EQ(sent.body, "body");
  EXPECT_THAT(sent.headers, ElementsAre(Pair("antipode-lineage", kText)));
  EXPECT_EQ(sent.message_id, "");
  EXPECT_THAT(a_.own().Get(queue).headers, ElementsAre(Pair("antipode-lineage", "1~_.i"))) << "SCOPE-31";
}

TEST_F(PublishingTest, ConfirmsAndMandatoryHaveTheirOutcomes) {
  Connection mq = a_.Wrapped(Options(kStore).Track());
  const std::string queue = a_.Queue();
  ASSERT_TRUE(mq.ConfirmSelect(1).ok());
  {
    Scope scope;
    const Published confirmed = mq.BasicPublish(1, "", queue, "x", nullptr, true);
    EXPECT_EQ(confirmed.outcome(), Outcome::kConfirmed) << confirmed.reply().words();
    EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U);
    EXPECT_TRUE(scope->pending().empty());
    EXPECT_EQ(scope->lineage().OfStore(kStore).front().key(), queue);
  }
  {
    Scope scope;
    const Published returned = mq.BasicPublish(1, "", "no-such-queue", "x", nullptr, true);
    EXPECT_EQ(returned.outcome(), Outcome::kReturned);
    EXPECT_EQ(returned.reply().code(), AMQP_NO_ROUTE);
    EXPECT_TRUE(scope->lineage().empty());
    EXPECT_TRUE(scope->pending().empty());
  }
  {
    Scope scope;  // the broker's own default: without mandatory it is confirmed, and dropped
    EXPECT_EQ(mq.BasicPublish(1, "", "no-such-queue", "x").outcome(), Outcome::kConfirmed);
  }
  {
    Scope scope;
    const Published unknown = mq.BasicPublish(1, "no-such-exchange", "", "x");
    EXPECT_EQ(unknown.outcome(), Outcome::kUnknown);
    EXPECT_EQ(unknown.reply().code(), 404);
    EXPECT_EQ(scope->pending().size(), 1U);
    EXPECT_THAT(scope->Outgoing()->incomplete(), ElementsAre(kStore));
  }
  {
    Scope scope;  // the channel is closed: nothing leaves
    const Published refused = mq.BasicPublish(1, "", queue, "x");
    EXPECT_EQ(refused.outcome(), Outcome::kNotSent);
    EXPECT_TRUE(scope->pending().empty());
    EXPECT_TRUE(scope->lineage().empty());
  }
  ASSERT_TRUE(mq.ChannelOpen(1).ok());
  ASSERT_TRUE(mq.ConfirmSelect(1).ok());
  EXPECT_EQ(mq.BasicPublish(1, "", queue, "again").outcome(), Outcome::kConfirmed);
}

TEST_F(PublishingTest, BodiesOfManyFramesAndConfirmsAmongDeliveries) {
  Connection mq = a_.Wrapped(Options(kStore).Track());
  const std::string queue = a_.Queue();
  ASSERT_TRUE(mq.ConfirmSelect(1).ok());
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());  // deliveries come between the confirms
  std::vector<std::string> bodies;
  Scope scope;
  for (const std::size_t size : {0U, 1U, 131072U, 131072U - 8U, 1000000U}) {
    bodies.emplace_back(size, static_cast<char>('a' + bodies.size()));
    ASSERT_EQ(mq.BasicPublish(1, "", queue, bodies.back()).outcome(), Outcome::kConfirmed);
  }
  EXPECT_EQ(scope->lineage().size(), bodies.size());
  Envelope envelope;
  for (const std::string& body : bodies) {
    ASSERT_TRUE(mq.ConsumeMessage(&envelope, 10s).ok());
    EXPECT_EQ(envelope.body().size(), body.size());
    EXPECT_TRUE(envelope.body() == body);
    ASSERT_TRUE(mq.BasicAck(envelope).ok());
  }
  EXPECT_TRUE(mq.ConsumeMessage(&envelope, 20ms).timed_out());
}

TEST_F(PublishingTest, WhatComesBackWithoutConfirmsCanBeTaken) {
  Connection mq = a_.Wrapped();
  ASSERT_EQ(mq.BasicPublish(1, "", "no-such-queue", "lost", nullptr, true).outcome(), Outcome::kSent);
  Envelope envelope;
  ASSERT_TRUE(Until([&] { return mq.TakeReturned(&envelope); }));
  EXPECT_EQ(envelope.body(), "lost");
  EXPECT_FALSE(mq.TakeReturned(&envelope));
}

TEST_F(PublishingTest, ALostConnectionLeavesAnUnknownOutcome) {
  Link link("a");
  const std::string queue = a_.Queue();
  auto mq = Connect(link.url(), Options(kStore).Track());
  ASSERT_TRUE(mq.ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  Scope scope;
  link.Silence();
  std::thread cut([&] {
    std::this_thread::sleep_for(300ms);
    link.Cut();
  });
  const Published lost = mq->BasicPublish(1, "", queue, "x");
  cut.join();
  EXPECT_EQ(lost.outcome(), Outcome::kUnknown);
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_THAT(scope->Outgoing()->incomplete(), ElementsAre(kStore));
  const Published after = mq->BasicPublish(1, "", queue, "x");  // it is known to be broken
  EXPECT_EQ(after.outcome(), Outcome::kNotSent);
  EXPECT_EQ(scope->pending().size(), 1U);
}

TEST_F(PublishingTest,
       AConnectionThatBrokeWhileNobodyLookedSendsNothing) {  // nothing is recorded that cannot have left
  Link link("a");
  auto mq = Connect(link.url(), Options(kStore).Track());
  ASSERT_TRUE(mq.ok());
  const std::string queue = a_.Queue();
  link.Cut();
  Scope scope;
  ASSERT_TRUE(Until([&] { return mq->BasicPublish(1, "", queue, "x").outcome() == Outcome::kNotSent; }));
  EXPECT_TRUE(scope->Known().empty());
}

TEST_F(PublishingTest, NoConfirmInTimeIsAnUnknownOutcomeAndTheNextOneHasItsOwn) {
  Link link("a");
  const std::string queue = a_.Queue();
  auto mq = Connect(link.url(), Options(kStore).Track().CallTimeout(400ms));
  ASSERT_TRUE(mq.ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  link.Silence();
  Scope scope;
  const auto begun = std::chrono::steady_clock::now();
  const Published late = mq->BasicPublish(1, "", queue, "late");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  EXPECT_EQ(late.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(late.reply().timed_out());
  link.Heal();
  Published next = mq->BasicPublish(1, "", queue, "next");
  EXPECT_TRUE(Until([&] { return next.ok() || (next = mq->BasicPublish(1, "", queue, "next")).ok(); }));
  EXPECT_GE(scope->pending().size(), 1U);  // the first one's outcome stays unknown
}

// A message that nobody waits for any more comes back; the next one is the same to look at, and a queue takes it.
TEST_F(PublishingTest, WhatCameBackBeforeIsNotThisMessage) {
  Link link("a");
  auto mq = Connect(link.url(), Options(kStore).CallTimeout(1s));
  ASSERT_TRUE(mq.ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  const std::string queue = NewName("late");
  link.HoldAnswers();
  EXPECT_EQ(mq->BasicPublish(1, "", queue, "x", nullptr, true).outcome(), Outcome::kUnknown);
  link.Heal();
  ASSERT_TRUE(Heard(*mq));
  a_.own().Declare(queue);
  EXPECT_EQ(mq->BasicPublish(1, "", queue, "x", nullptr, true).outcome(), Outcome::kConfirmed);
  Envelope first;
  EXPECT_TRUE(mq->TakeReturned(&first));  // the application can have it still
  EXPECT_EQ(first.body(), "x");
  a_.Delete(queue);
}

TEST_F(PublishingTest, WhatComesBackMeanwhileIsNotThisMessage) {
  Link link("a");
  auto mq = Connect(link.url(), Options(kStore).CallTimeout(3s));
  ASSERT_TRUE(mq.ok());
  ASSERT_TRUE(mq->ConfirmSelect(1).ok());
  const std::string queue = NewName("late");
  link.HoldAnswers();
  EXPECT_EQ(mq->BasicPublish(1, "", queue, "x", nullptr, true).outcome(), Outcome::kUnknown);
  a_.own().Declare(queue);
  std::thread heal([&] {  // once the second one is there, so that the first one's return comes while it is waited for
    EXPECT_TRUE(Until([&] { return a_.own().Count(queue) == 1; }));
    link.Heal();
  });
  const Published second = mq->BasicPublish(1, "", queue, "x", nullptr, true);
  heal.join();
  EXPECT_EQ(second.outcome(), Outcome::kConfirmed) << second.reply().words();
  a_.Delete(queue);
}

TEST_F(PublishingTest, ABrokerThatReadsNothingStopsNoCallForEver) {
  const std::string queue = a_.Queue();
  auto mq = Connect(a_.url(), Options(kStore).Track().CallTimeout(500ms));
  ASSERT_TRUE(mq.ok());
  TheLab().Freeze("rabbitmq", "a");
  const std::string big(32 << 20, 'x');
  Scope scope;
  auto begun = std::chrono::steady_clock::now();
  Published stuck = mq->BasicPublish(1, "", queue, big);
  for (int more = 0; stuck.ok() && more < 10; ++more) {
    stuck = mq->BasicPublish(1, "", queue, big);  // until buffers are full
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(stuck.outcome(), Outcome::kUnknown);
  EXPECT_THAT(stuck.reply().words(), HasSubstr("did not answer"));
  begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(mq->TxSelect(1).ok());
  Envelope envelope;
  EXPECT_FALSE(mq->BasicGet(1, queue, &envelope).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 200ms);  // it is known to be broken
  TheLab().Thaw("rabbitmq", "a");
  EXPECT_LT(took, 8s);
  EXPECT_FALSE(scope->pending().empty());
}

TEST_F(PublishingTest, EveryCallEndsAtABrokerThatDoesNotAnswer) {
  const std::string queue = a_.Queue();
  TheLab().Freeze("rabbitmq", "a");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(Connect(a_.url(), Options(kStore).CallTimeout(300ms)).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  TheLab().Thaw("rabbitmq", "a");
  using Call = std::function<Reply(Connection&)>;
  Envelope envelope;
  const std::vector<Call> calls = {
      [](Connection& mq) { return mq.ChannelOpen(2); },
      [](Connection& mq) { return mq.ConfirmSelect(1); },
      [](Connection& mq) { return mq.TxSelect(1); },
      [&](Connection& mq) { return mq.BasicGet(1, queue, &envelope); },
      [&](Connection& mq) { return mq.BasicConsume(1, queue); },
      [](Connection& mq) { return mq.BasicRecover(1); },
      [](Connection& mq) { return mq.BasicQos(1, 5); },
      [](Connection& mq) { return mq.ChannelClose(1); },
  };
  for (const Call& call : calls) {
    auto mq = Connect(a_.url(), Options(kStore).CallTimeout(5s));
    ASSERT_TRUE(mq.ok()) << mq.error().message;
    auto brief = Connect(a_.url(), Options(kStore).CallTimeout(300ms));
    ASSERT_TRUE(brief.ok()) << brief.error().message;
    TheLab().Freeze("rabbitmq", "a");
    const auto began = std::chrono::steady_clock::now();
    const Reply reply = call(*brief);
    const auto took = std::chrono::steady_clock::now() - began;
    TheLab().Thaw("rabbitmq", "a");
    EXPECT_FALSE(reply.ok());
    EXPECT_FALSE(reply.timed_out());  // it cannot be used any more
    EXPECT_LT(took, 3s);
  }
}

TEST_F(PublishingTest, TransactionsArePendingUntilTheirCommit) {  // SHIM-11
  Connection mq = a_.Wrapped(Options(kStore).Track());
  const std::string queue = a_.Queue();
  Scope scope;
  ASSERT_TRUE(mq.BasicPublish(1, "", queue, "before").ok());
  ASSERT_TRUE(mq.TxSelect(1).ok());
  ASSERT_TRUE(mq.BasicPublish(1, "", queue, "dropped").ok());
  EXPECT_THAT(scope->lineage().incomplete(), ElementsAre(kStore));
  ASSERT_TRUE(mq.TxRollback(1).ok());
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_EQ(scope->lineage().size(), 1U);
  for (const char* body : {"one", "two"}) ASSERT_TRUE(mq.BasicPublish(1, "", queue, body).ok());
  EXPECT_EQ(scope->pending().size(), 2U);
  ASSERT_TRUE(mq.TxCommit(1).ok());
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_EQ(scope->lineage().size(), 3U);
  ASSERT_TRUE(mq.TxCommit(1).ok());
  for (const char* body : {"before", "one", "two"}) EXPECT_EQ(a_.own().Get(queue).body, body);
}

TEST_F(PublishingTest, WhoCommitsWhatAnotherScopePublishedHasIt) {  // SCOPE-24
  Link link("a");
  const std::string queue = a_.Queue();
  auto mq = Connect(link.url(), Options(kStore).Track().CallTimeout(300ms));
  ASSERT_TRUE(mq.ok() && mq->TxSelect(1).ok());
  const auto publish = [&] {
    const Scope ended;
    ASSERT_TRUE(mq->BasicPublish(1, "", queue, "x").ok());
  };
  Scope scope;
  publish();
  ASSERT_TRUE(mq->TxRollback(1).ok());
  EXPECT_TRUE(scope->pending().empty() && scope.lineage().empty());
  publish();
  ASSERT_TRUE(mq->TxCommit(1).ok());
  EXPECT_TRUE(scope->pending().empty() && scope.lineage().IsComplete());
  EXPECT_EQ(scope->lineage().size(), 1U);
  publish();
  link.Silence();
  EXPECT_FALSE(mq->TxCommit(1).ok());
  EXPECT_THAT(scope->lineage().incomplete(), ElementsAre(kStore)) << "SCOPE-17";
}

TEST_F(PublishingTest, ACommitInDoubtStaysPending) {  // SCOPE-17
  Link link("a");
  const std::string queue = a_.Queue();
  auto mq = Connect(link.url(), Options(kStore).Track().CallTimeout(300ms));
  ASSERT_TRUE(mq.ok());
  Scope scope;
  ASSERT_TRUE(mq->TxSelect(1).ok());
  ASSERT_TRUE(mq->BasicPublish(1, "", queue, "x").ok());
  link.Silence();
  EXPECT_FALSE(mq->TxCommit(1).ok());
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_THAT(scope->lineage().incomplete(), ElementsAre(kStore));
}

TEST_F(PublishingTest, ATransactionThatEndsWithItsConnectionLeavesNothing) {
  const std::string queue = a_.Queue();
  Scope scope;
  {
    Connection mq = a_.Wrapped(Options(kStore).Track());
    ASSERT_TRUE(mq.TxSelect(1).ok());
    ASSERT_TRUE(mq.BasicPublish(1, "", queue, "x").ok());
    EXPECT_EQ(scope->pending().size(), 1U);
  }
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope->Known().empty());
}

TEST_F(PublishingTest, AWriteThatIsPendingMarksTheMessage) {
  Connection mq = a_.Wrapped();
  const std::string queue = a_.Queue();
  MemoryStore orders({"orders"}, {"a"});
  const MemoryClient client = orders.Client("a");
  Scope scope;
  const auto store = *FindStore("orders");
  {
    Writing write(store, "1");
    ASSERT_TRUE(mq.BasicPublish(1, "", queue, "x").ok());
    EXPECT_THAT(a_.own().Get(queue).headers, ElementsAre(Pair("antipode-lineage", "1~_.i.orders")));
    SettingWords raise;
    raise.on_pending = OnPending::kRaise;
    ASSERT_TRUE(Configure(raise).ok());
    const Published early = mq.BasicPublish(1, "", queue, "too early");
    EXPECT_EQ(early.outcome(), Outcome::kNotSent);
    ASSERT_NE(early.error(), nullptr);
    EXPECT_EQ(early.error()->code, ErrorCode::kPendingWrite);
    write.Abandon();
  }
  EXPECT_EQ(a_.own().Count(queue), 0);
}

TEST_F(PublishingTest, WhatCannotBeWrittenIsRefusedBeforeAnythingIsSent) {  // else the channel would be in disorder
  Connection mq = a_.Wrapped(Options(kStore).Track());
  const std::string queue = a_.Queue();
  Scope scope;
  EXPECT_EQ(mq.BasicPublish(1, "", std::string(300, 'k'), "x").outcome(), Outcome::kNotSent);
  const std::string big(200000, 'x');
  amqp_table_entry_t entry{};
  entry.key = Octets("big");
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = Octets(big);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {1, &entry};
  EXPECT_EQ(mq.BasicPublish(1, "", queue, "x", &properties).outcome(), Outcome::kNotSent);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(mq.BasicPublish(1, "", queue, "in order").ok());
  EXPECT_EQ(a_.own().Get(queue).body, "in order");
}

}  // namespace
}  // namespace antipode::rabbitmq
