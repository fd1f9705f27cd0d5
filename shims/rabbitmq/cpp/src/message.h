// One message as it comes in: its envelope while it is put together, and what barriers of its scope ask of it.
#ifndef ANTIPODE_RABBITMQ_MESSAGE_H_
#define ANTIPODE_RABBITMQ_MESSAGE_H_

#include <amqp.h>
#include <amqp_framing.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/rabbitmq.h"
#include "antipode/settings.h"

namespace antipode::rabbitmq {

// What one `Wrap` was told.
struct WrapArguments {
  std::shared_ptr<Store> store;
  bool track = false;
  bool stamped = false;
  OnNoRoom on_no_room = OnNoRoom::kSend;
  std::optional<bool> lineage_in;  // nothing where nothing was said: at a declared edge nothing is taken then (TRUST-4)
  std::optional<bool> lineage_out;
  std::optional<std::chrono::nanoseconds> own_redeliver_delay;
  // Takes the mark of a tracked message of this store that came by this connection.
  std::function<void(const std::string& mark)> arrived;

  std::chrono::nanoseconds redeliver_delay() const {
    return own_redeliver_delay ? *own_redeliver_delay : std::chrono::nanoseconds(CurrentSettings()->redeliver_delay);
  }
};

// A delivered message; any thread may ask for it, while its connection's thread settles it.
class DeliveredState final : public DeliveredMessage {
 public:
  DeliveredState(std::shared_ptr<const WrapArguments> by, amqp_channel_t on, std::uint64_t delivery_tag, std::uint64_t of_life)
      : told(std::move(by)), channel(on), tag(delivery_tag), life(of_life) {}

  std::string Refusal() const override;
  // From now on it cannot go back, for this reason; the first one stays.
  void Settle(std::string_view why);

  const std::shared_ptr<const WrapArguments> told;
  const amqp_channel_t channel;
  const std::uint64_t tag;
  const std::uint64_t life;  // the time of its channel in which the tag is this message's
  std::string never;       // why it could not go back from the beginning; empty where it could
  std::string lineage;     // its header `antipode-lineage` as it came
  std::string jms;         // likewise `antipode_lineage`

 private:
  mutable std::mutex mutex_;
  std::string refusal_;
};

// What a shim's own files do with an envelope.
struct EnvelopeAccess {
  static amqp_envelope_t& Raw(Envelope& envelope) { return envelope.envelope_; }
  static const std::shared_ptr<DeliveredState>& DeliveredOf(const Envelope& envelope) { return envelope.delivered_; }
  static void Deliver(Envelope& envelope, std::shared_ptr<DeliveredState> delivered) {
    envelope.delivered_ = std::move(delivered);
  }
  static void Hold(Envelope& envelope) { envelope.held_ = true; }
};

// A message whose frames are coming: first what the method says, then the properties, then the body.
class Incoming {
 public:
  enum class Kind { kDelivered, kGot, kReturned };

  static Incoming Of(amqp_channel_t channel, const amqp_basic_deliver_t& method);
  static Incoming Of(amqp_channel_t channel, const amqp_basic_get_ok_t& method);
  static Incoming Of(amqp_channel_t channel, const amqp_basic_return_t& method);

  // False where memory is short.
  bool TakeProperties(const amqp_basic_properties_t& properties, std::uint64_t body_size);
  // False where there is more of it than was said.
  bool TakeBody(amqp_bytes_t fragment);
  bool IsWhole() const {
    return has_properties_ && taken_ == EnvelopeAccess::Raw(const_cast<Envelope&>(envelope)).message.body.len;
  }

  Kind kind = Kind::kDelivered;
  Envelope envelope;
  bool no_ack = false;       // the broker has forgotten it
  int code = 0;              // of one that came back
  std::string words;         // likewise
  std::uint64_t number = 0;  // likewise: the how-manieth

 private:
  Incoming(Kind of, amqp_channel_t channel, amqp_bytes_t exchange, amqp_bytes_t routing_key);
  amqp_envelope_t& raw() { return EnvelopeAccess::Raw(envelope); }

  bool has_properties_ = false;
  std::size_t taken_ = 0;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_MESSAGE_H_
