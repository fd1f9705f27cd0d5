#include "message.h"

#include <cstring>
#include <limits>
#include <utility>

#include "headers.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

// Properties that stand in the message's own pool. rabbitmq-c's own function for it is not public.
bool Clone(const amqp_basic_properties_t& from, amqp_basic_properties_t& to, amqp_pool_t* pool) {
  to = from;
  struct Field {
    amqp_flags_t flag;
    amqp_bytes_t amqp_basic_properties_t::*octets;
  };
  static constexpr Field kFields[] = {
      {AMQP_BASIC_CONTENT_TYPE_FLAG, &amqp_basic_properties_t::content_type},
      {AMQP_BASIC_CONTENT_ENCODING_FLAG, &amqp_basic_properties_t::content_encoding},
      {AMQP_BASIC_CORRELATION_ID_FLAG, &amqp_basic_properties_t::correlation_id},
      {AMQP_BASIC_REPLY_TO_FLAG, &amqp_basic_properties_t::reply_to},
      {AMQP_BASIC_EXPIRATION_FLAG, &amqp_basic_properties_t::expiration},
      {AMQP_BASIC_MESSAGE_ID_FLAG, &amqp_basic_properties_t::message_id},
      {AMQP_BASIC_TYPE_FLAG, &amqp_basic_properties_t::type},
      {AMQP_BASIC_USER_ID_FLAG, &amqp_basic_properties_t::user_id},
      {AMQP_BASIC_APP_ID_FLAG, &amqp_basic_properties_t::app_id},
      {AMQP_BASIC_CLUSTER_ID_FLAG, &amqp_basic_properties_t::cluster_id},
  };
  for (const Field& field : kFields) {
    amqp_bytes_t& octets = to.*field.octets;
    const amqp_bytes_t given = from.*field.octets;
    octets = amqp_empty_bytes;
    if ((from._flags & field.flag) == 0 || given.len == 0) continue;
    amqp_pool_alloc_bytes(pool, given.len, &octets);
    if (octets.bytes == nullptr) return false;
    std::memcpy(octets.bytes, given.bytes, given.len);
  }
  to.headers = amqp_empty_table;
  return (from._flags & AMQP_BASIC_HEADERS_FLAG) == 0 ||
         amqp_table_clone(&from.headers, &to.headers, pool) == AMQP_STATUS_OK;
}

}  // namespace

std::string DeliveredState::Refusal() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_.empty() ? never : refusal_;
}

void DeliveredState::Settle(std::string_view why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (refusal_.empty()) refusal_ = why;
}

Envelope::Envelope(Envelope&& other) noexcept
    : envelope_(std::exchange(other.envelope_, amqp_envelope_t{})),
      held_(std::exchange(other.held_, false)),
      delivered_(std::move(other.delivered_)) {}

Envelope& Envelope::operator=(Envelope&& other) noexcept {
  if (this != &other) {
    amqp_destroy_envelope(&envelope_);
    envelope_ = std::exchange(other.envelope_, amqp_envelope_t{});
    held_ = std::exchange(other.held_, false);
    delivered_ = std::move(other.delivered_);
  }
  return *this;
}

Envelope::~Envelope() { amqp_destroy_envelope(&envelope_); }

std::string_view Envelope::body() const { return View(envelope_.message.body); }

std::string_view Envelope::Header(std::string_view name) const {
  return TextOf(HeadersOf(&envelope_.message.properties), name).value_or(std::string_view());
}

Incoming::Incoming(Kind of, amqp_channel_t channel, amqp_bytes_t exchange, amqp_bytes_t routing_key) : kind(of) {
  init_amqp_pool(&raw().message.pool, 4096);
  raw().channel = channel;
  raw().exchange = amqp_bytes_malloc_dup(exchange);
  raw().routing_key = amqp_bytes_malloc_dup(routing_key);
}

Incoming Incoming::Of(amqp_channel_t channel, const amqp_basic_deliver_t& method) {
  Incoming made(Kind::kDelivered, channel, method.exchange, method.routing_key);
  made.raw().consumer_tag = amqp_bytes_malloc_dup(method.consumer_tag);
  made.raw().delivery_tag = method.delivery_tag;
  made.raw().redelivered = method.redelivered;
  return made;
}

Incoming Incoming::Of(amqp_channel_t channel, const amqp_basic_get_ok_t& method) {
  Incoming made(Kind::kGot, channel, method.exchange, method.routing_key);
  made.raw().delivery_tag = method.delivery_tag;
  made.raw().redelivered = method.redelivered;
  return made;
}

Incoming Incoming::Of(amqp_channel_t channel, const amqp_basic_return_t& method) {
  Incoming made(Kind::kReturned, channel, method.exchange, method.routing_key);
  made.code = method.reply_code;
  made.words = View(method.reply_text);
  return made;
}

bool Incoming::TakeProperties(const amqp_basic_properties_t& properties, std::uint64_t body_size) {
  amqp_message_t& message = raw().message;
  if (has_properties_ || body_size > std::numeric_limits<std::size_t>::max() / 2) return false;
  has_properties_ = true;
  if (!Clone(properties, message.properties, &message.pool)) return false;
  if (body_size == 0) return true;
  message.body = amqp_bytes_malloc(static_cast<std::size_t>(body_size));
  return message.body.bytes != nullptr;
}

bool Incoming::TakeBody(amqp_bytes_t fragment) {
  const amqp_bytes_t body = raw().message.body;
  if (!has_properties_ || fragment.len > body.len - taken_) return false;
  if (fragment.len != 0) std::memcpy(static_cast<char*>(body.bytes) + taken_, fragment.bytes, fragment.len);
  taken_ += fragment.len;
  return true;
}

}  // namespace antipode::rabbitmq
