// Declaring taps: for the operator or the application's own set-up.
#include <algorithm>
#include <array>
#include <utility>

#include "antipode/rabbitmq.h"
#include "inside.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::int64_t kLeastSegment = 1000000;

amqp_table_entry_t Entry(std::string_view name, std::string_view text) {
  amqp_table_entry_t entry{};
  entry.key = Octets(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = Octets(text);
  return entry;
}

amqp_table_entry_t Entry(std::string_view name, std::int64_t number) {
  amqp_table_entry_t entry{};
  entry.key = Octets(name);
  entry.value.kind = AMQP_FIELD_KIND_I64;
  entry.value.value.i64 = number;
  return entry;
}

}  // namespace

Reply Connection::Inside::DeclareTap(amqp_channel_t channel, std::string_view exchange, std::string_view queue,
                                     std::string_view routing_key, std::int64_t max_bytes) {
  std::array<amqp_table_entry_t, 3> entries = {
      Entry("x-queue-type", "stream"),
      Entry("x-max-length-bytes", max_bytes),
      Entry("x-stream-max-segment-size-bytes", std::max(max_bytes / 4, kLeastSegment)),
  };
  const amqp_table_t arguments{static_cast<int>(entries.size()), entries.data()};
  const Reply declared = wire_.Ask(channel, [&] {
    amqp_queue_declare(state(), channel, Octets(queue), 0, 1, 0, 0, arguments);
    return amqp_get_rpc_reply(state());
  });
  if (!declared.ok()) return declared;
  const Reply bound = wire_.Ask(channel, [&] {
    amqp_queue_bind(state(), channel, Octets(queue), Octets(exchange), Octets(routing_key), amqp_empty_table);
    return amqp_get_rpc_reply(state());
  });
  return bound.ok() ? Reply::OfBroker(0, std::string(queue)) : bound;
}

Reply DeclareTap(Connection& connection, amqp_channel_t channel, const std::string& exchange, std::string queue,
                 const std::string& routing_key, std::int64_t max_bytes) {
  if (queue.empty()) queue = exchange + ".tap";
  return connection.inside_->DeclareTap(channel, exchange, queue, routing_key, max_bytes);
}

}  // namespace antipode::rabbitmq
