// Recorded histories: RabbitMQ's messages are sendings and receipts (HIST-26, HIST-30, HIST-31).
#include "history_test.h"

#include <string>
#include <vector>

#include "region.h"

namespace antipode::rabbitmq {
namespace {

using testing::History;
using Json = History::Json;

class HistoryTest : public RabbitTest {
 protected:
  // Publishes in a scope of its own that depends on one write.
  void Publish(const amqp_basic_properties_t* properties = nullptr) {
    const Scope scope;
    Append(BlogWrite());
    EXPECT_TRUE(mq_.BasicPublish(1, "", queue_, "x", properties).ok());
  }
  Envelope Take() {
    Envelope envelope;
    const Reply reply = mq_.ConsumeMessage(&envelope, 10s);
    EXPECT_TRUE(reply.ok()) << reply.words();
    return envelope;
  }
  std::vector<Json> Lines(const std::string& kind) const { return history_.Lines(kind, {"message", "lineage"}); }

  const History history_;
  Connection mq_ = a_.Wrapped();
  const std::string queue_ = a_.Queue();
};

TEST_F(HistoryTest, AMessageIsSentAndReceived) {
  Publish();
  ASSERT_TRUE(mq_.BasicConsume(1, queue_).ok());
  {
    const Envelope envelope = Take();
    const Scope scope = ScopeOf(envelope);
    EXPECT_EQ(scope.lineage().Serialize(), kText);
    EXPECT_TRUE(scope.lineage().extensions().empty());
  }
  const std::vector<Json> sent = Lines("send");
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].at("lineage"), kText);
  EXPECT_EQ(Lines("receive"), (std::vector<Json>{{{"message", sent[0].at("message")}}}));
  EXPECT_TRUE(Lines("gap").empty()) << "a queue has no reads";
}

// What was published with properties of another message depends on that one, too, and has a name of its own.
TEST_F(HistoryTest, PropertiesOfAnotherMessage) {
  Publish();
  ASSERT_TRUE(mq_.BasicConsume(1, queue_).ok());
  const Envelope first = Take();
  Publish(&first->message.properties);
  const Envelope second = Take();
  { const Scope scope = ScopeOf(second); }
  const std::vector<Json> sent = Lines("send");
  const std::vector<Json> came = Lines("receive");
  ASSERT_EQ(sent.size(), 3U);  // the first message, what joins its lineage to the other's scope, and the second
  ASSERT_EQ(came.size(), 3U);
  EXPECT_EQ(came[0].at("message"), sent[0].at("message"));
  EXPECT_EQ(came[1].at("message"), sent[1].at("message"));
  EXPECT_EQ(came[2].at("message"), sent[2].at("message"));
  EXPECT_NE(sent[2].at("message"), sent[0].at("message"));
  EXPECT_EQ(sent[2].at("lineage"), kText);
}

}  // namespace
}  // namespace antipode::rabbitmq
