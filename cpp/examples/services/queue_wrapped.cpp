// The queue by Antipode's shim round rabbitmq-c.
#include <antipode/rabbitmq.h>

#include <chrono>
#include <utility>

#include "queue_clients.h"

namespace services {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr std::chrono::hours kLong{1};

antipode::rabbitmq::Connection Connect(const std::string& url) {
  auto connected = antipode::rabbitmq::Connect(url, kNotifications);
  if (!connected) throw Failure(connected.error().message);
  return *std::move(connected);
}

void Check(const antipode::rabbitmq::Reply& reply) {
  if (!reply.ok()) throw Failure("RabbitMQ: " + reply.words());
}

class WrappedPublisher : public Publisher {
 public:
  explicit WrappedPublisher(const std::string& url) : connection_(Connect(url)) {
    Check(connection_.ConfirmSelect(kChannel));
  }

  void Publish(const std::string& exchange, const MessageHeaders& headers, const std::string& body) override {
    const HeaderTable table(headers);
    const amqp_basic_properties_t properties = table.Properties();
    const auto published = connection_.BasicPublish(kChannel, exchange, "", body, &properties, true);
    if (published.error() != nullptr) throw Failure(published.error()->message);
    if (!published.ok()) throw Failure("RabbitMQ: " + published.reply().words());
  }

 private:
  antipode::rabbitmq::Connection connection_;
};

class WrappedConsumer : public Consumer {
 public:
  WrappedConsumer(const std::string& url, const std::string& queue) : connection_(Connect(url)) {
    Check(connection_.BasicQos(kChannel, 1));
    Check(connection_.BasicConsume(kChannel, queue));
  }

  void Run(const HandleMessage& handle) override {
    for (;;) {
      antipode::rabbitmq::Envelope envelope;
      const auto came = connection_.ConsumeMessage(&envelope, kLong);
      if (came.timed_out()) continue;
      Check(came);
      {
        const antipode::Scope scope = antipode::rabbitmq::ScopeOf(envelope);  // this message's own
        handle(TextsOf(envelope->message.properties), std::string(envelope.body()));
      }
      Check(connection_.BasicAck(envelope));
    }
  }

 private:
  antipode::rabbitmq::Connection connection_;
};

}  // namespace

std::unique_ptr<Publisher> WrappedPublisherTo(const std::string& url) {
  return std::make_unique<WrappedPublisher>(url);
}

std::unique_ptr<Consumer> WrappedConsumerOf(const std::string& url, const std::string& queue) {
  return std::make_unique<WrappedConsumer>(url, queue);
}

}  // namespace services
