// Python and C++ at one broker: the same octets leave, and each reads what the other has sent (PROP-17, SHIM-17,
// SHIM-21).
#include <cstdio>
#include <string>

#include "octets.h"
#include "region.h"

namespace antipode::rabbitmq {
namespace {

using PythonTest = RabbitTest;

// What Python answers to an action; its words hold no quotation marks.
std::string Python(const std::vector<std::string>& words) {
  std::string command = lab::Python() + " " + ANTIPODE_RABBITMQ_PYTHON_PART;
  for (const std::string& word : words) command += " '" + word + "'";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string answer;
  char octets[512];
  while (pipe != nullptr && fgets(octets, sizeof octets, pipe) != nullptr) answer += octets;
  EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0) << command;
  while (!answer.empty() && answer.back() == '\n') answer.pop_back();
  return answer;
}

// Publishes as python_part.py does; the scope's lineage afterwards.
std::string Publish(Connection& mq, const std::string& exchange, const std::string& key, const std::string& body,
                    const std::string& message_id = "") {
  amqp_table_entry_t entry{};
  entry.key = Octets("mine");
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = Octets("yours");
  amqp_basic_properties_t given{};
  given._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  given.headers = {1, &entry};
  given.content_type = Octets("text/plain");
  given.delivery_mode = 2;
  if (!message_id.empty()) {
    given._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    given.message_id = Octets(message_id);
  }
  const Scope scope;
  Append(*WriteId::Position("blog", "0-1", 42));
  EXPECT_TRUE(mq.BasicPublish(1, exchange, key, body, &given).ok());
  return scope.lineage().Serialize();
}

// Properties with what is random in them made the same.
std::string Without(std::string properties, const std::string& mark) {
  for (std::size_t at = properties.find(mark); at != std::string::npos; at = properties.find(mark)) {
    properties.replace(at, mark.size(), std::string(mark.size(), '#'));
  }
  return properties;
}

TEST_F(PythonTest, TheSameOctetsLeave) {
  const std::string queue = a_.Queue();
  {
    Connection mq = a_.Wrapped();
    Publish(mq, "", queue, "x");
    const PlainMessage ours = a_.own().Get(queue);
    Python({"publish", a_.url(), "", queue, "x"});
    EXPECT_EQ(ours.properties, a_.own().Get(queue).properties);
  }
  Connection mq = a_.Wrapped(Options(kStore).Track());
  Publish(mq, "", queue, "x");
  const PlainMessage ours = a_.own().Get(queue);
  Python({"publish", a_.url(), "", queue, "x", "track"});
  const PlainMessage theirs = a_.own().Get(queue);
  EXPECT_EQ(ours.message_id.size(), theirs.message_id.size());
  EXPECT_EQ(Without(ours.properties, ours.message_id), Without(theirs.properties, theirs.message_id));
  Publish(mq, "", queue, "x", "order-7");
  const PlainMessage own = a_.own().Get(queue);
  Python({"publish", a_.url(), "", queue, "x", "own"});
  const PlainMessage again = a_.own().Get(queue);
  ASSERT_EQ(own.headers.size(), 3U);
  ASSERT_EQ(again.headers.size(), 3U);
  EXPECT_EQ(own.headers[1].first, kMarkHeader);
  EXPECT_EQ(Without(own.properties, own.headers[1].second), Without(again.properties, again.headers[1].second));
}

TEST_F(PythonTest, EachConsumesWhatTheOtherHasSent) {
  const std::string queue = a_.Queue();
  const std::string sent = Python({"publish", a_.url(), "", queue, "x"});
  EXPECT_EQ(sent, kText);
  Connection mq = a_.Wrapped();
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  Envelope envelope;
  ASSERT_TRUE(mq.ConsumeMessage(&envelope, 10s).ok());
  EXPECT_EQ(ScopeOf(envelope).lineage().Serialize(), sent);
  ASSERT_TRUE(mq.BasicAck(envelope).ok());
  const std::string other = a_.Queue();
  const std::string ours = Publish(mq, "", other, "x");
  EXPECT_EQ(Python({"consume", a_.url(), other}), ours);
}

TEST_F(PythonTest, EachWaitsForWhatTheOtherHasSent) {  // SHIM-17
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  Connection mq = b_.Wrapped(Options(kStore).Taps({tap}).Track());
  const Lineage theirs = *Lineage::Deserialize(Python({"publish", b_.url(), exchange, "", "x", "track"}));
  ASSERT_EQ(theirs.OfStore(kStore).size(), 1U);
  EXPECT_EQ(VerdictOf(theirs, 10s), Verdict::kVisible);
  const std::string ours = Publish(mq, exchange, "", "x");
  EXPECT_EQ(Python({"judge", b_.url(), tap.queue, ours}), "visible");
}

}  // namespace
}  // namespace antipode::rabbitmq
