/// \file
/// RabbitMQ for C++ services: a rabbitmq-c connection whose messages carry the lineage (shims/rabbitmq/README.md).
///
///     auto mq = antipode::rabbitmq::Connect("amqp://broker.internal/%2F", {"notifications"});
///     mq->BasicPublish(1, "notifications", "", "42");      // carries the scope's lineage in `antipode-lineage`
///
///     mq->BasicConsume(1, "followers");
///     antipode::rabbitmq::Envelope envelope;
///     while (mq->ConsumeMessage(&envelope, 5s).ok()) {
///       antipode::Scope scope = antipode::rabbitmq::ScopeOf(envelope);  // this message's own
///       auto there =
///       antipode::Barrier(antipode::BarrierOptions().Timeout(2s).OnTimeout(antipode::Policy::kRedeliver)); if
///       (there.error() != nullptr) { mq->GiveBack(envelope, *there.error()); continue; }
///       Notify(posts.Get(envelope.body()));
///       mq->BasicAck(envelope);
///     }
#ifndef ANTIPODE_RABBITMQ_H_
#define ANTIPODE_RABBITMQ_H_

#include <amqp.h>
#include <amqp_framing.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/scope.h"
#include "antipode/site.h"
#include "antipode/store.h"

namespace antipode ANTIPODE_EXPORT {
namespace rabbitmq {

/// The header of a tracked message's own mark, where the application has given it a `message_id`, which it may use
/// again.
inline constexpr std::string_view kMarkHeader = "antipode-mark";

/// How many of the last messages a tap remembers by default.
inline constexpr std::size_t kRemembered = 20000;

/// How much of the past a tap keeps by default, in bytes.
inline constexpr std::int64_t kTapBytes = std::int64_t{256} * 1024 * 1024;

/// A stream queue that is bound to the exchange, at a broker of the region that waits: where everybody can see what
/// arrived.
struct Tap {
  /// The broker: `amqp://user:password@host:port/vhost`.
  std::string url;
  std::string queue;
  /// How many of the last messages are remembered; older ones cannot be waited for.
  std::size_t remember = kRemembered;

  /// From a text: the broker's URL with the queue as its fragment, `amqp://broker/%2F#notifications.tap`;
  /// kConfiguration.
  static Result<Tap> Parse(std::string_view text);
  /// The address of the broker, `amqp://host:port/vhost`, without credentials.
  std::string Broker() const;
  /// The address of the tap: the broker's, and the queue behind `#`.
  std::string Address() const;
};

/// What becomes of a message whose headers would fill a frame with the lineage (PROP-19).
enum class OnNoRoom { kSend, kRaise };

/// How a connection is wrapped: the words of every store, and those of queues.
struct Options : StoreOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is what most wraps say.
  Options(const char* store) : StoreOptions(store) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Options(std::string store) : StoreOptions(std::move(store)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): options of any store are options of this one.
  Options(StoreOptions options) : StoreOptions(std::move(options)) {}

  /// Each message is a write, which can be waited for where the region has a tap.
  bool track = false;
  /// Every publisher stamps these messages, also with the empty lineage: one that comes without has lost it.
  bool stamped = false;
  OnNoRoom on_no_room = OnNoRoom::kSend;
  /// How long a message waits before it goes back; by default the setting's 1 s.
  std::optional<std::chrono::nanoseconds> redeliver_delay;
  /// How long one call may take before its connection is given up; a wait for messages says its own.
  std::chrono::nanoseconds call_timeout = std::chrono::seconds(10);
  /// The broker of a connection that is given to `Wrap`, as `amqp://host:port/vhost`: rabbitmq-c does not know it any
  /// more. With it, a message that was consumed here counts as arrived for the taps of that broker, too.
  std::string url;

  Options& Track(bool value = true) { return Said(track, value); }
  /// The stream queues of this region (SHIM-17).
  Options& Taps(const std::vector<Tap>& taps) {
    return Said(replicas, std::optional<Targets>(Targets(taps.begin(), taps.end())));
  }
  Options& Stamped(bool value = true) { return Said(stamped, value); }
  Options& WhenNoRoom(OnNoRoom value) { return Said(on_no_room, value); }
  Options& RedeliverDelay(std::chrono::nanoseconds value) {
    return Said(redeliver_delay, std::optional<std::chrono::nanoseconds>(value));
  }
  Options& CallTimeout(std::chrono::nanoseconds value) { return Said(call_timeout, value); }
  Options& Url(std::string value) { return Said(url, std::move(value)); }

 private:
  template <class T>
  Options& Said(T& member, T value) {
    member = std::move(value);
    return *this;
  }
};

/// What came of a call.
class [[nodiscard]] Reply {
 public:
  Reply() = default;
  /// rabbitmq-c's status, and its words where no others are given.
  static Reply OfStatus(int status, std::string words = {});
  /// The broker's answer: it closed the channel or the connection, or cancelled the consumer.
  static Reply OfBroker(int code, std::string words);

  bool ok() const { return status_ == AMQP_STATUS_OK && code_ == 0; }
  /// rabbitmq-c's `AMQP_STATUS_…`; AMQP_STATUS_OK where the broker itself refused.
  int status() const { return status_; }
  /// The broker's reply code, such as 404; 0 where it gave none.
  int code() const { return code_; }
  /// Nothing came in time, and the connection can still be used.
  bool timed_out() const { return status_ == AMQP_STATUS_TIMEOUT; }
  /// What went wrong, for a person; after a success what the broker gave (`BasicConsume`: the consumer tag).
  const std::string& words() const { return words_; }

 private:
  int status_ = AMQP_STATUS_OK;
  int code_ = 0;
  std::string words_;
};

/// What became of a message.
enum class Outcome {
  kSent,       ///< Sent, without publisher confirms or in a transaction.
  kConfirmed,  ///< The broker has it, and a queue.
  kReturned,   ///< `mandatory`, and no queue takes it.
  kNotSent,    ///< It never left.
  kUnknown,    ///< A broken connection, a channel that the broker closed, no answer in time, a negative confirmation.
};

/// What a publish gave.
class [[nodiscard]] Published {
 public:
  Published(Outcome outcome, Reply reply) : outcome_(outcome), reply_(std::move(reply)) {}
  explicit Published(Error error)
      : outcome_(Outcome::kNotSent), error_(std::make_shared<const Error>(std::move(error))) {}

  bool ok() const { return outcome_ == Outcome::kSent || outcome_ == Outcome::kConfirmed; }
  Outcome outcome() const { return outcome_; }
  /// The client's or broker's words where it is not `ok()`; the broker's code for a message that came back (312).
  const Reply& reply() const { return reply_; }
  /// Why Antipode refused to send (kPendingWrite; kConfiguration with `OnNoRoom::kRaise`); null otherwise.
  const Error* error() const { return error_.get(); }

 private:
  Outcome outcome_;
  Reply reply_;
  std::shared_ptr<const Error> error_;
};

class DeliveredState;

/// A message that came, freed with this object: rabbitmq-c's envelope, and how its connection was wrapped.
class Envelope {
 public:
  Envelope() = default;
  Envelope(Envelope&& other) noexcept;
  Envelope& operator=(Envelope&& other) noexcept;
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
  ~Envelope();

  /// Whether there is a message.
  explicit operator bool() const { return held_; }
  const amqp_envelope_t* operator->() const { return &envelope_; }
  const amqp_envelope_t& operator*() const { return envelope_; }
  /// The message's octets.
  std::string_view body() const;
  /// A header that is a text or octets; empty where it is not there.
  std::string_view Header(std::string_view name) const;

 private:
  friend class Connection;
  friend struct EnvelopeAccess;
  amqp_envelope_t envelope_{};
  bool held_ = false;
  std::shared_ptr<DeliveredState> delivered_;
};

/// How `BasicConsume` consumes.
struct ConsumeOptions {
  std::string consumer_tag;  ///< Empty: the broker makes one.
  bool no_local = false;
  bool no_ack = false;       ///< Messages are forgotten by the broker as it sends them, and cannot go back.
  bool exclusive = false;
  amqp_table_t arguments{0, nullptr};
};

/// A rabbitmq-c connection whose messages carry lineages. Its methods are rabbitmq-c's functions without `amqp_`.
///
/// Like an `amqp_connection_state_t` it serves one thread at a time. Every call ends: where the broker does not answer
/// within `call_timeout` the connection is given up (no other way out of a half-sent frame), and every call after it
/// says so at once. A connection serves one store; a service that consumes one queue and publishes to another one has
/// two, as RabbitMQ advises.
class Connection {
 public:
  class Inside;
  explicit Connection(std::unique_ptr<Inside> inside);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Closes it in order. A transaction that is open then leaves nothing.
  ~Connection();

  // Channels

  /// Opens a channel; also anew, after the broker has closed it. What came for the one before is dropped: the broker
  /// gives its messages again (those of a consumer with `no_ack` are kept, which nobody else would give).
  Reply ChannelOpen(amqp_channel_t channel);
  Reply ChannelClose(amqp_channel_t channel);
  Reply BasicQos(amqp_channel_t channel, std::uint16_t prefetch_count);

  // Publishing

  /// Publisher confirms: from now on `BasicPublish` waits for the broker's word.
  Reply ConfirmSelect(amqp_channel_t channel);
  /// Publishes. The caller's properties stay as they are: the lineage goes into a copy of the headers.
  ///
  /// With `track` the message is pending from here until it was sent or, with confirms, confirmed: then its identifier
  /// joins the scope. One that came back or never left leaves nothing; one of unknown outcome stays pending (SCOPE-17).
  Published BasicPublish(amqp_channel_t channel, std::string_view exchange, std::string_view routing_key,
                         std::string_view body, const amqp_basic_properties_t* properties = nullptr,
                         bool mandatory = false, Site site = Site());
  /// A message that came back where nobody waited for its confirm; false where there is none.
  bool TakeReturned(Envelope* envelope);

  /// A transactional channel: tracked messages are pending until `TxCommit` (SHIM-11).
  Reply TxSelect(amqp_channel_t channel);
  Reply TxCommit(amqp_channel_t channel);
  Reply TxRollback(amqp_channel_t channel);

  // Consuming

  /// Begins to consume a queue; the reply's words are the consumer tag. On a connection that also publishes say how
  /// many messages may come ahead (`BasicQos`): each publish has to read past them.
  Reply BasicConsume(amqp_channel_t channel, std::string_view queue, const ConsumeOptions& options = {});
  /// The next message of any consumer. `timed_out()` where none came within `wait`; the broker's answer where it closed
  /// the channel or the connection or cancelled the consumer. Messages whose time has come go back meanwhile.
  Reply ConsumeMessage(Envelope* envelope, std::chrono::nanoseconds wait);
  /// Takes one message of a queue; the envelope is empty where the queue is.
  Reply BasicGet(amqp_channel_t channel, std::string_view queue, Envelope* envelope, bool no_ack = false);
  /// Refuses (AMQP_STATUS_INVALID_PARAMETER) a message whose tag may be another one's by now: its channel has ended or
  /// was recovered, or another connection gave it.
  Reply BasicAck(const Envelope& envelope, bool multiple = false);
  Reply BasicAck(amqp_channel_t channel, std::uint64_t delivery_tag, bool multiple = false);
  Reply BasicNack(amqp_channel_t channel, std::uint64_t delivery_tag, bool multiple = false, bool requeue = true);
  Reply BasicReject(amqp_channel_t channel, std::uint64_t delivery_tag, bool requeue = true);
  Reply BasicRecover(amqp_channel_t channel, bool requeue = true);

  /// Gives a message back after `redeliver_delay`, as a barrier's kRedeliver asks for: it stays unacknowledged until
  /// then, and goes by `basic.nack` inside a later call of this connection. Fails (kConfiguration) where it cannot go
  /// back (BAR-45).
  Result<void> GiveBack(const Envelope& envelope, const Error& why);

  /// rabbitmq-c's own connection: for declarations and what else is not here, and the way round the shim. Take messages
  /// and frames by this object alone.
  amqp_connection_state_t state() const;
  const std::shared_ptr<Store>& store() const;

 private:
  friend Result<Connection> Wrap(amqp_connection_state_t connection, const Options& options);
  friend Reply DeclareTap(Connection& connection, amqp_channel_t channel, const std::string& exchange,
                          std::string queue, const std::string& routing_key, std::int64_t max_bytes);
  std::unique_ptr<Inside> inside_;
};

/// Opens the scope of one message: its lineage as far as it is believed, current until the object ends.
///
/// A barrier in it may ask for kRedeliver; `GiveBack` then does that.
Scope ScopeOf(const Envelope& envelope, Site site = Site());
/// The same for an envelope of rabbitmq-c's own; it cannot be given back by Antipode.
Scope ScopeOf(const amqp_envelope_t& envelope, Site site = Site());

/// Takes a connection over, after its login and with its channels open; it ends with the object returned, and also
/// where this fails. Its messages carry lineages from now on.
///
/// Asks at once whether the taps can be read: kUnfitStore with the cure (`WhenUnfit(kUnproven)`: it is logged).
/// kConfiguration: options that cannot be, or a connection that is none.
Result<Connection> Wrap(amqp_connection_state_t connection, const Options& options);

/// Connects to a broker by its URL, opens channel 1 and wraps: kConfiguration with the client's words where that fails.
/// It may take `call_timeout`.
Result<Connection> Connect(const std::string& url, Options options);

/// This process waits for a store of messages, and neither publishes nor consumes it.
Result<void> Register(const Options& options);

/// Declares a tap: a stream queue, bound to an exchange. For the operator or the application's own set-up.
///
/// `queue`: by default the exchange's name with `.tap`. `routing_key`: `#` is everything of a topic exchange, and of a
/// fanout exchange any key is; a direct exchange needs a call for each of its keys. `max_bytes`: how much of the past
/// the broker keeps at least a quarter of. The reply's words are the queue's name.
Reply DeclareTap(Connection& connection, amqp_channel_t channel, const std::string& exchange, std::string queue = {},
                 const std::string& routing_key = "#", std::int64_t max_bytes = kTapBytes);

}  // namespace rabbitmq
}  // namespace antipode

#endif  // ANTIPODE_RABBITMQ_H_
