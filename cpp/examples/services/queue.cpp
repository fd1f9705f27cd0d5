#include "queue.h"

#include "queue_clients.h"

namespace services {
namespace {

constexpr amqp_delivery_mode_enum kNotKept = AMQP_DELIVERY_NONPERSISTENT;

const std::string& BrokerOf(const Setup& setup, const std::string& region) {
  const auto found = setup.queues.find(region);
  if (found == setup.queues.end()) throw Failure("the setup has no broker of region " + region);
  return found->second;
}

}  // namespace

amqp_bytes_t Octets(const std::string& text) {
  amqp_bytes_t octets;
  octets.len = text.size();
  octets.bytes = const_cast<char*>(text.data());  // rabbitmq-c only reads it
  return octets;
}

std::string Text(const amqp_bytes_t& octets) { return std::string(static_cast<const char*>(octets.bytes), octets.len); }

MessageHeaders TextsOf(const amqp_basic_properties_t& properties) {
  MessageHeaders headers;
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return headers;
  for (int at = 0; at < properties.headers.num_entries; ++at) {
    const amqp_table_entry_t& entry = properties.headers.entries[at];
    if (entry.value.kind == AMQP_FIELD_KIND_UTF8) headers.emplace(Text(entry.key), Text(entry.value.value.bytes));
  }
  return headers;
}

HeaderTable::HeaderTable(const MessageHeaders& headers) {
  for (const auto& [name, value] : headers) {
    amqp_table_entry_t entry{};
    entry.key = Octets(name);
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = Octets(value);
    entries_.push_back(entry);
  }
}

amqp_basic_properties_t HeaderTable::Properties() const {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = kNotKept;
  properties.headers.num_entries = static_cast<int>(entries_.size());
  properties.headers.entries = const_cast<amqp_table_entry_t*>(entries_.data());  // rabbitmq-c only reads them
  return properties;
}

std::unique_ptr<Publisher> ConnectPublisher(const Setup& setup) {
  const std::string& broker = BrokerOf(setup, "a");
  return setup.antipode ? WrappedPublisherTo(broker) : PlainPublisherTo(broker);
}

std::unique_ptr<Consumer> ConnectConsumer(const Setup& setup) {
  const std::string& broker = BrokerOf(setup, "b");
  return setup.antipode ? WrappedConsumerOf(broker, setup.queue) : PlainConsumerOf(broker, setup.queue);
}

}  // namespace services
