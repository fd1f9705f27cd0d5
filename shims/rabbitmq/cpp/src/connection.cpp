#include <utility>

#include "antipode/rabbitmq.h"
#include "inside.h"

namespace antipode::rabbitmq {

Connection::Connection(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Connection::Connection(Connection&& other) noexcept = default;
Connection& Connection::operator=(Connection&& other) noexcept = default;
Connection::~Connection() = default;

Reply Connection::ChannelOpen(amqp_channel_t channel) { return inside_->ChannelOpen(channel); }

Reply Connection::ChannelClose(amqp_channel_t channel) { return inside_->ChannelClose(channel); }

Reply Connection::BasicQos(amqp_channel_t channel, std::uint16_t prefetch_count) {
  return inside_->BasicQos(channel, prefetch_count);
}

Reply Connection::ConfirmSelect(amqp_channel_t channel) { return inside_->ConfirmSelect(channel); }

Published Connection::BasicPublish(amqp_channel_t channel, std::string_view exchange, std::string_view routing_key,
                                   std::string_view body, const amqp_basic_properties_t* properties, bool mandatory,
                                   Site site) {
  return inside_->Publish(channel, exchange, routing_key, body, properties, mandatory, site);
}

bool Connection::TakeReturned(Envelope* envelope) { return inside_->TakeReturned(envelope); }

Reply Connection::TxSelect(amqp_channel_t channel) { return inside_->TxSelect(channel); }

Reply Connection::TxCommit(amqp_channel_t channel) { return inside_->TxCommit(channel); }

Reply Connection::TxRollback(amqp_channel_t channel) { return inside_->TxRollback(channel); }

Reply Connection::BasicConsume(amqp_channel_t channel, std::string_view queue, const ConsumeOptions& options) {
  return inside_->Consume(channel, queue, options);
}

Reply Connection::ConsumeMessage(Envelope* envelope, std::chrono::nanoseconds wait) {
  return inside_->Next(envelope, wait);
}

Reply Connection::BasicGet(amqp_channel_t channel, std::string_view queue, Envelope* envelope, bool no_ack) {
  return inside_->Get(channel, queue, envelope, no_ack);
}

Reply Connection::BasicAck(const Envelope& envelope, bool multiple) {
  return inside_->Ack(envelope, multiple);
}

Reply Connection::BasicAck(amqp_channel_t channel, std::uint64_t delivery_tag, bool multiple) {
  return inside_->Ack(channel, delivery_tag, multiple);
}

Reply Connection::BasicNack(amqp_channel_t channel, std::uint64_t delivery_tag, bool multiple, bool requeue) {
  return inside_->Nack(channel, delivery_tag, multiple, requeue);
}

Reply Connection::BasicReject(amqp_channel_t channel, std::uint64_t delivery_tag, bool requeue) {
  return inside_->Reject(channel, delivery_tag, requeue);
}

Reply Connection::BasicRecover(amqp_channel_t channel, bool requeue) { return inside_->Recover(channel, requeue); }

Result<void> Connection::GiveBack(const Envelope& envelope, const Error& why) {
  return inside_->GiveBack(envelope, why);
}

amqp_connection_state_t Connection::state() const { return inside_->state(); }

const std::shared_ptr<Store>& Connection::store() const { return inside_->told().store; }

}  // namespace antipode::rabbitmq
