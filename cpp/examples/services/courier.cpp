#include "courier.h"

#include <antipode/antipode.h>
#include <antipode/memory.h>
#include <antipode/rabbitmq.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "setup.h"

namespace services {
namespace {

namespace rabbitmq = antipode::rabbitmq;

constexpr amqp_channel_t kIn = 1;
constexpr amqp_channel_t kOut = 2;
constexpr std::uint16_t kPrefetch = 5;
constexpr const char* kOrigin = "origin";

void Check(const rabbitmq::Reply& reply) {
  if (!reply.ok()) throw Failure("RabbitMQ: " + reply.words());
}

void Append(const char* store, std::uint64_t number) {
  antipode::Append(*antipode::WriteId::Position(store, "e", number));
}

class Courier {
 public:
  explicit Courier(const std::string& url) {
    auto connected = rabbitmq::Connect(url, rabbitmq::Options("parcels").RedeliverDelay(std::chrono::milliseconds(50)));
    if (!connected) throw Failure(connected.error().message);
    connection_.emplace(*std::move(connected));
    Check(connection_->ChannelOpen(kOut));
    Check(connection_->ConfirmSelect(kOut));
  }

  void Produce(const std::string& queue, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t number = first; number < last; ++number) {
      {
        const antipode::Scope scope;
        Append(kOrigin, number);
        Publish(queue, std::to_string(number));
      }
      std::cout << std::to_string(number) + "\n" << std::flush;
    }
  }

  void Relay(const std::string& queue, const std::string& out) {
    antipode::MemoryStore none(kOrigin, {"here"});  // has none of the writes that the messages depend on
    none.Client("here");
    Check(connection_->BasicQos(kIn, kPrefetch));
    Check(connection_->BasicConsume(kIn, queue));
    for (;;) {
      rabbitmq::Envelope envelope;
      const auto came = connection_->ConsumeMessage(&envelope, std::chrono::hours(1));
      if (came.timed_out()) continue;
      Check(came);
      Take(envelope, out);
    }
  }

 private:
  void Publish(const std::string& queue, const std::string& body) {
    amqp_basic_properties_t persistent{};
    persistent._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    persistent.delivery_mode = 2;
    const auto published = connection_->BasicPublish(kOut, "", queue, body, &persistent, true);
    if (published.error() != nullptr) throw Failure(published.error()->message);
    if (!published.ok()) throw Failure("RabbitMQ: " + published.reply().words());
  }

  // Sends a message on, and answers for it; its first delivery may fail, by the last digit of its number.
  void Take(const rabbitmq::Envelope& envelope, const std::string& out) {
    const antipode::Scope scope = rabbitmq::ScopeOf(envelope);
    const std::string body(envelope.body());
    const std::uint64_t number = std::stoull(body);
    const std::uint64_t failure = envelope->redelivered != 0 ? 0 : number % 10;
    if (failure == 5) {
      const auto result = antipode::Barrier(antipode::BarrierOptions()
                                                .Timeout(std::chrono::nanoseconds::zero())
                                                .OnTimeout(antipode::Policy::kRedeliver)
                                                .OnUnproven(antipode::Policy::kRedeliver));
      if (result.error() == nullptr) throw Failure("a barrier passed");
      const auto back = connection_->GiveBack(envelope, *result.error());
      if (!back.ok()) throw Failure(back.error().message);
      return;
    }
    if (failure != 3) {
      Append("relay", number);
      Publish(out, body);
    }
    if (failure == 3 || failure == 7) {
      Check(connection_->BasicNack(kIn, envelope->delivery_tag));
    } else {
      Check(connection_->BasicAck(envelope));
    }
  }

  std::optional<rabbitmq::Connection> connection_;
};

}  // namespace

void RunCourier(const std::vector<std::string>& words) {
  if (words.size() < 4) throw Failure("a courier needs a role, the broker's URL and queues");
  Courier courier(words[1]);
  if (words[0] == "produce") {
    courier.Produce(words[2], std::stoull(words[3]), std::stoull(words.at(4)));
  } else {
    courier.Relay(words[2], words[3]);
  }
}

}  // namespace services
