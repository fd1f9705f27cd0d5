#include "inside.h"

#include <algorithm>
#include <sstream>

#include "antipode/logs.h"
#include "headers.h"
#include "octets.h"

namespace antipode::rabbitmq {

using std::chrono::milliseconds;

Connection::Inside::Inside(amqp_connection_state_t taken, std::shared_ptr<const WrapArguments> told, Duration call_timeout)
    : wire_(taken, call_timeout), told_(std::move(told)) {}

Connection::Inside::~Inside() {
  for (auto& [number, channel] : channels_) Drop(channel);
}

// What a channel's end leaves: the broker drops what was not committed, and takes back what was not acknowledged.
void Connection::Inside::Drop(Channel& channel) {
  for (const PublishedMessages& each : channel.sent) each.write->Abandon();
  EndLife(channel, "its channel has ended");
  const std::uint64_t life = channel.life;
  std::string ended = std::move(channel.ended);
  channel = Channel();
  channel.life = life;
  channel.ended = std::move(ended);
}

void Connection::Inside::EndLife(Channel& channel, std::string_view why) {
  channel.returns.Forget(why);
  ++channel.life;
  channel.ended = why;
}

Reply Connection::Inside::ChannelOpen(amqp_channel_t channel) {
  wire_.Drain();  // the broker may have closed the one before, which is to be confirmed first
  if (wire_.broken()) return *wire_.broken();
  const Reply reply = wire_.AskAnyway(channel, [&] {
    amqp_channel_open(state(), channel);
    return amqp_get_rpc_reply(state());
  });
  if (!reply.ok()) return reply;
  wire_.Forget(channel);
  Drop(channels_[channel]);
  return reply;
}

Reply Connection::Inside::ChannelClose(amqp_channel_t channel) {
  const Reply reply = wire_.Ask(channel, [&] { return amqp_channel_close(state(), channel, AMQP_REPLY_SUCCESS); });
  if (reply.ok()) wire_.Forget(channel);
  Drop(channels_[channel]);
  return reply;
}

Reply Connection::Inside::BasicQos(amqp_channel_t channel, std::uint16_t prefetch_count) {
  return wire_.Ask(channel, [&] {
    amqp_basic_qos(state(), channel, 0, prefetch_count, 0);
    return amqp_get_rpc_reply(state());
  });
}

Reply Connection::Inside::ConfirmSelect(amqp_channel_t channel) {
  const Reply reply = wire_.Ask(channel, [&] {
    amqp_confirm_select(state(), channel);
    return amqp_get_rpc_reply(state());
  });
  if (reply.ok()) channels_[channel].confirms = true;
  return reply;
}

// Transactions

Reply Connection::Inside::TxSelect(amqp_channel_t channel) {
  const Reply reply = wire_.Ask(channel, [&] {
    amqp_tx_select(state(), channel);
    return amqp_get_rpc_reply(state());
  });
  if (reply.ok()) channels_[channel].transactional = true;
  return reply;
}

Reply Connection::Inside::TxCommit(amqp_channel_t channel) {
  std::vector<PublishedMessages>& sent = channels_[channel].sent;
  wire_.Drain();
  if (auto closed = wire_.Closed(channel)) {  // the commit is not sent: the broker has dropped them
    for (const PublishedMessages& each : sent) each.write->Abandon();
    sent.clear();
    return *closed;
  }
  for (const PublishedMessages& each : sent) each.write->JoinCommitter();
  const Reply reply = wire_.Ask(channel, [&] {
    amqp_tx_commit(state(), channel);
    return amqp_get_rpc_reply(state());
  });
  for (const PublishedMessages& each : sent) {
    if (reply.ok()) {
      each.write->Record(each.version);
    } else {
      each.write->OutcomeUnknown();
    }
  }
  sent.clear();
  return reply;
}

Reply Connection::Inside::TxRollback(amqp_channel_t channel) {
  const Reply reply = wire_.Ask(channel, [&] {
    amqp_tx_rollback(state(), channel);
    return amqp_get_rpc_reply(state());
  });
  // Without the broker's answer, too: what was not committed is dropped when the channel ends, as it does then.
  for (const PublishedMessages& each : channels_[channel].sent) each.write->Abandon();
  channels_[channel].sent.clear();
  return reply;
}

// Consuming

Reply Connection::Inside::Consume(amqp_channel_t channel, std::string_view queue, const ConsumeOptions& options) {
  std::string tag;
  const Reply reply = wire_.Ask(channel, [&] {
    const amqp_basic_consume_ok_t* const said =
        amqp_basic_consume(state(), channel, Octets(queue), Octets(options.consumer_tag), options.no_local ? 1 : 0,
                           options.no_ack ? 1 : 0, options.exclusive ? 1 : 0, options.arguments);
    if (said != nullptr) tag = View(said->consumer_tag);
    return amqp_get_rpc_reply(state());
  });
  if (!reply.ok()) return reply;
  if (options.no_ack) wire_.ConsumesWithoutAck(channel, tag);
  return Reply::OfBroker(0, std::move(tag));
}

Reply Connection::Inside::Next(Envelope* envelope, Duration wait) {
  *envelope = Envelope();
  const Clock::time_point deadline = Clock::now() + wait;
  while (true) {
    ReturnDue();
    if (!wire_.delivered.empty()) {
      const bool no_ack = wire_.delivered.front().no_ack;
      *envelope = std::move(wire_.delivered.front().envelope);
      wire_.delivered.pop_front();
      Prepare(*envelope, no_ack);
      return {};
    }
    if (!wire_.events.empty()) {
      const Reply event = wire_.events.front().what;
      wire_.events.pop_front();
      return event;
    }
    if (wire_.broken()) return *wire_.broken();
    const auto due = NextDue();
    const int status = wire_.Pump(due ? std::min(*due, deadline) : deadline);
    if (status == AMQP_STATUS_TIMEOUT && Clock::now() >= deadline) return Reply::OfStatus(AMQP_STATUS_TIMEOUT);
  }
}

Reply Connection::Inside::Get(amqp_channel_t channel, std::string_view queue, Envelope* envelope, bool no_ack) {
  *envelope = Envelope();
  ReturnDue();
  bool found = false;
  const Reply reply = wire_.Ask(channel, [&] {
    const amqp_rpc_reply_t answer = amqp_basic_get(state(), channel, Octets(queue), no_ack ? 1 : 0);
    if (answer.reply_type == AMQP_RESPONSE_NORMAL && answer.reply.id == AMQP_BASIC_GET_OK_METHOD) {
      found = true;
      wire_.Expect(channel, *static_cast<const amqp_basic_get_ok_t*>(answer.reply.decoded));
    }
    return answer;
  });
  if (!reply.ok() || !found) return reply;
  const Clock::time_point deadline = Clock::now() + wire_.limit();
  while (wire_.got.empty()) {
    if (auto closed = wire_.Closed(channel)) return *closed;
    if (wire_.Pump(deadline) == AMQP_STATUS_TIMEOUT) return wire_.GiveUp();
  }
  *envelope = std::move(wire_.got.front().envelope);
  wire_.got.pop_front();
  Prepare(*envelope, no_ack);
  return reply;
}

// A message is about to be given to the application: what its scope will ask of it.
void Connection::Inside::Prepare(Envelope& envelope, bool no_ack) {
  EnvelopeAccess::Hold(envelope);
  Channel& channel = channels_[envelope->channel];
  auto delivered = std::make_shared<DeliveredState>(told_, envelope->channel, envelope->delivery_tag, channel.life);
  const amqp_table_t headers = HeadersOf(&envelope->message.properties);
  delivered->lineage = TextOf(headers, kLineageHeader).value_or(std::string_view());
  delivered->jms = TextOf(headers, kJmsProperty).value_or(std::string_view());
  if (no_ack) {
    delivered->never = "it is consumed with no_ack (auto_ack), so the broker has forgotten it";
  } else {
    if (Has(headers, kStreamOffset)) delivered->never = "a stream queue takes no message back";
    channel.returns.Opened(delivered);  // also what never goes back is settled with all others (PROP-36)
  }
  EnvelopeAccess::Deliver(envelope, std::move(delivered));
}

// What goes back

Reply Connection::Inside::Settle(amqp_channel_t channel, std::uint64_t tag, bool multiple,
                                 const std::function<int(std::uint64_t)>& call) {
  if (auto closed = wire_.Closed(channel)) return *closed;
  Returns& returns = channels_[channel].returns;
  const std::uint64_t last = multiple && tag == 0 ? returns.LastOfAll() : tag;
  for (const std::uint64_t first : returns.Settling(tag, multiple)) Return(channel, first);
  if (last == Returns::kNothing) return Reply::OfStatus(AMQP_STATUS_OK);
  return wire_.Send([&] { return call(last); });
}

// Why a message may not be settled for good; nothing where it may.
std::optional<Reply> Connection::Inside::Refuse(std::string_view call, amqp_channel_t channel, std::uint64_t tag) {
  if (!channels_[channel].returns.GoesBack(tag)) return std::nullopt;
  return Reply::OfStatus(AMQP_STATUS_INVALID_PARAMETER,
                         std::string(call) +
                             ": the message goes back to its queue, as its barrier asked, and would be lost. "
                             "Settle it for good only where GiveBack() was not called. [AP113]");
}

// Why the tag of a message is not, or no more, that of the message.
std::string Connection::Inside::NotSettledHere(const Envelope& envelope) {
  const auto& delivered = EnvelopeAccess::DeliveredOf(envelope);
  if (delivered == nullptr || delivered->told != told_) return "this connection did not give that message";
  const Channel& channel = channels_[delivered->channel];
  if (delivered->life == channel.life) return {};
  return "the broker has taken that message back: " + channel.ended;
}

Reply Connection::Inside::Ack(const Envelope& envelope, bool multiple) {
  if (std::string words = NotSettledHere(envelope); !words.empty()) {
    return Reply::OfStatus(AMQP_STATUS_INVALID_PARAMETER, "BasicAck(): " + words);
  }
  return Ack(envelope->channel, envelope->delivery_tag, multiple);
}

Reply Connection::Inside::Ack(amqp_channel_t channel, std::uint64_t tag, bool multiple) {
  if (auto refused = Refuse("BasicAck()", channel, tag)) return *refused;
  return Settle(channel, tag, multiple,
                [&](std::uint64_t last) { return amqp_basic_ack(state(), channel, last, multiple ? 1 : 0); });
}

Reply Connection::Inside::Nack(amqp_channel_t channel, std::uint64_t tag, bool multiple, bool requeue) {
  if (!requeue) {
    if (auto refused = Refuse("BasicNack()", channel, tag)) return *refused;
  }
  return Settle(channel, tag, multiple, [&](std::uint64_t last) {
    return amqp_basic_nack(state(), channel, last, multiple ? 1 : 0, requeue ? 1 : 0);
  });
}

Reply Connection::Inside::Reject(amqp_channel_t channel, std::uint64_t tag, bool requeue) {
  if (!requeue) {
    if (auto refused = Refuse("BasicReject()", channel, tag)) return *refused;
  }
  return Settle(channel, tag, false,
                [&](std::uint64_t last) { return amqp_basic_reject(state(), channel, last, requeue ? 1 : 0); });
}

Reply Connection::Inside::Recover(amqp_channel_t channel, bool requeue) {
  EndLife(channels_[channel], "the channel was recovered");
  const Reply reply = wire_.Ask(channel, [&] {
    amqp_basic_recover(state(), channel, requeue ? 1 : 0);
    return amqp_get_rpc_reply(state());
  });
  if (reply.ok()) wire_.Recovered(channel);
  return reply;
}

Result<void> Connection::Inside::GiveBack(const Envelope& envelope, const Error& why) {
  if (const std::string words = NotSettledHere(envelope); !words.empty()) {
    return Error{ErrorCode::kConfiguration, "AP113", "GiveBack(): " + words};
  }
  const auto& delivered = EnvelopeAccess::DeliveredOf(envelope);
  if (const std::string refusal = delivered->Refusal(); !refusal.empty()) {
    return Error{ErrorCode::kConfiguration, "AP113", "GiveBack(): the message cannot go back: " + refusal};
  }
  delivered->Settle("it goes back to its queue already");
  const std::string& name = told_->store->name();
  const Duration delay = told_->redeliver_delay();
  const std::string told = why.Words();
  std::ostringstream words;
  words << "a message of " << name << " goes back to its queue in " << std::chrono::duration<double>(delay).count()
        << " s: " << told.substr(0, told.find('\n'));
  logs::Info(why.message_code, "redeliver " + name, words.str(), "redelivered");
  channels_[delivered->channel].returns.GiveBack(delivered->tag, Clock::now() + delay);
  return {};
}

void Connection::Inside::ReturnDue() {
  const Clock::time_point now = Clock::now();
  for (auto& [number, channel] : channels_) {
    for (const std::uint64_t tag : channel.returns.TakeDue(now)) Return(number, tag);
  }
}

// Where the channel has ended the broker gives it back by itself.
void Connection::Inside::Return(amqp_channel_t channel, std::uint64_t tag) {
  if (wire_.Closed(channel)) return;
  wire_.Send([&] { return amqp_basic_nack(state(), channel, tag, 0, 1); }).ok();
}

std::optional<Clock::time_point> Connection::Inside::NextDue() const {
  std::optional<Clock::time_point> next;
  for (const auto& [number, channel] : channels_) {
    if (const auto due = channel.returns.NextDue()) next = next ? std::min(*next, *due) : due;
  }
  return next;
}

bool Connection::Inside::TakeReturned(Envelope* envelope) {
  *envelope = Envelope();
  wire_.Drain();
  if (wire_.returned.empty()) return false;
  *envelope = std::move(wire_.returned.front().envelope);
  wire_.returned.pop_front();
  EnvelopeAccess::Hold(*envelope);
  return true;
}

}  // namespace antipode::rabbitmq
