#include "reader.h"

#include <functional>
#include <utility>

#include "headers.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::uint16_t kPrefetch = 400;
// After so long without a message the broker is asked for a sign of life.
constexpr Duration kSilent = std::chrono::milliseconds(500);
// So long at most messages are read before questions are answered again.
constexpr Duration kPumpAtMost = std::chrono::milliseconds(200);

// A broker that ends or begins is out of reach; what else it says is its answer.
bool IsRefusal(int code) {
  return code != AMQP_CONNECTION_FORCED && code != AMQP_INTERNAL_ERROR && code != AMQP_RESOURCE_ERROR && code != 0;
}

// What tells a message from another one at the same offset of another stream.
std::size_t LooksOf(const Envelope& envelope) {
  std::size_t looks = std::hash<std::string_view>()(envelope.body());
  const auto add = [&looks](std::size_t more) { looks = looks * 1000003 ^ more; };
  add(std::hash<std::string>()(MarkOf(envelope->message.properties).value_or("")));
  add(std::hash<std::string_view>()(View(envelope->routing_key)));
  if ((envelope->message.properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0) {
    add(envelope->message.properties.timestamp);
  }
  return looks;
}

}  // namespace

std::variant<std::unique_ptr<TapReader>, Failure> TapReader::Open(const Tap& tap, TapMemory& memory, Duration timeout) {
  const Result<Place> place = Place::Parse(tap.url);
  if (!place.ok()) return Failure{true, 0, place.error().Words()};
  auto opened = rabbitmq::Open(*place, timeout);
  if (auto* failure = std::get_if<Failure>(&opened)) {
    failure->by_broker = failure->by_broker && IsRefusal(failure->code);
    return *failure;
  }
  std::unique_ptr<TapReader> reader(new TapReader(std::get<amqp_connection_state_t>(opened), tap, memory, timeout));
  reader->Consume(std::nullopt, 1);
  if (reader->failure_) return *reader->failure_;
  return reader;
}

TapReader::TapReader(amqp_connection_state_t state, const Tap& tap, TapMemory& memory, Duration timeout)
    : tap_(tap), memory_(memory), wire_(state, timeout) {}

void TapReader::Fail(Failure why) {
  if (!failure_) failure_ = std::move(why);
}

// What the broker said of a channel is its answer; a connection's end is out of reach.
void TapReader::LookForEnd() {
  if (wire_.broken()) {
    Fail({false, wire_.broken()->code(), wire_.broken()->words()});
  } else if (const auto closed = wire_.Closed(channel_)) {
    Fail({IsRefusal(closed->code()), closed->code(), closed->words()});
  } else if (!wire_.events.empty()) {
    Fail({false, 0, tap_.queue + " went away"});
  }
}

template <class Call>
bool TapReader::Ask(const Call& call) {
  if (failure_) return false;
  const Reply reply = wire_.Ask(channel_, call);
  if (!reply.ok()) LookForEnd();
  if (reply.ok()) heard_at_ = Clock::now();
  return reply.ok();
}

void TapReader::Consume(std::optional<std::int64_t> offset, std::uint16_t prefetch) {
  amqp_table_entry_t entry{};
  entry.key = Octets(kStreamOffset);
  if (offset) {
    entry.value.kind = AMQP_FIELD_KIND_I64;
    entry.value.value.i64 = *offset;
  } else {
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = Octets("last");
  }
  const amqp_table_t arguments{1, &entry};
  amqp_connection_state_t const state = wire_.state();
  static_cast<void>(Ask([&] {
    amqp_basic_qos(state, channel_, 0, prefetch, 0);
    return amqp_get_rpc_reply(state);
  }) && Ask([&] {
    amqp_basic_consume(state, channel_, Octets(tap_.queue), amqp_empty_bytes, 0, 0, 0, arguments);
    return amqp_get_rpc_reply(state);
  }));
}

// Reads by a new channel, of another number: messages of the one before may still come.
void TapReader::ReadFrom(std::int64_t offset) {
  amqp_connection_state_t const state = wire_.state();
  const amqp_channel_t before = channel_;
  static_cast<void>(Ask([&] { return amqp_channel_close(state, before, AMQP_REPLY_SUCCESS); }));
  channel_ = static_cast<amqp_channel_t>(before + 1);
  probing_ = false;
  first_ = true;
  unacknowledged_ = 0;
  static_cast<void>(Ask([&] {
    amqp_channel_open(state, channel_);
    return amqp_get_rpc_reply(state);
  }));
  Consume(offset, kPrefetch);
}

bool TapReader::Pump() {
  bool wanted = false;
  const Clock::time_point until = Clock::now() + kPumpAtMost;
  while (!failure_ && Clock::now() < until) {
    const int status = wire_.Pump(Clock::now());
    if (status == AMQP_STATUS_OK) heard_at_ = Clock::now();
    while (!wire_.delivered.empty() && !failure_) {
      const Envelope envelope = std::move(wire_.delivered.front().envelope);
      wire_.delivered.pop_front();
      if (envelope->channel == channel_) wanted = Take(envelope) || wanted;
    }
    LookForEnd();
    if (status == AMQP_STATUS_TIMEOUT && wire_.delivered.empty()) break;
  }
  return wanted;
}

bool TapReader::Take(const Envelope& envelope) {
  const auto offset = NumberOf(HeadersOf(&envelope->message.properties), kStreamOffset);
  const std::size_t looks = LooksOf(envelope);
  if (probing_) {  // the stream's last chunk begins here; an empty stream has none, and its first message comes here,
                   // too
    if (!offset) {
      Fail({true, 0, tap_.queue + " gives messages without " + std::string(kStreamOffset) + ": it is no stream"});
      return false;
    }
    chunk_ = *offset;
    ReadFrom(memory_.Resume(chunk_, looks));
    return false;
  }
  if (offset) {
    if (std::exchange(first_, false) && memory_.IsElsewhere(*offset, looks)) {
      ReadFrom(memory_.BeginAnew(chunk_));
      return false;
    }
    memory_.Read(*offset, looks);
  }
  const auto mark = MarkOf(envelope->message.properties);
  const bool wanted = mark && memory_.Note(*mark);
  if (++unacknowledged_ >= kPrefetch / 4) {
    unacknowledged_ = 0;
    wire_.Send([&] { return amqp_basic_ack(wire_.state(), channel_, envelope->delivery_tag, 1); }).ok();
  }
  return wanted;
}

void TapReader::Check() {
  Pump();
  if (failure_ || Clock::now() - heard_at_ < kSilent) return;
  static_cast<void>(Ask([&] {
    amqp_queue_declare(wire_.state(), channel_, Octets(tap_.queue), 1, 0, 0, 0, amqp_empty_table);
    return amqp_get_rpc_reply(wire_.state());
  }));
  Pump();
}

std::optional<Failure> Probe(const Tap& tap, Duration timeout) {
  TapMemory memory(1);
  auto opened = TapReader::Open(tap, memory, timeout);
  if (const auto* failure = std::get_if<Failure>(&opened)) return *failure;
  return std::nullopt;
}

Cure CureOf(const Tap& tap, const Failure& failure) {
  const std::string& words = failure.words;
  const Result<Place> place = Place::Parse(tap.url);
  if (!place.ok()) return {words, "See the URL."};
  const std::string& user = place->user;
  const std::string& vhost = place->vhost;
  const std::string grant = "rabbitmqctl set_permissions -p " + vhost + " " + user + " '^$' '^$' '^" + tap.queue + "$'";
  const auto holds = [&words](std::string_view part) { return words.find(part) != std::string::npos; };
  if (failure.code == AMQP_NOT_FOUND) {
    return {"there is no queue " + tap.queue,
            "Declare it once: antipode::rabbitmq::DeclareTap(connection, 1, EXCHANGE, \"" + tap.queue + "\")."};
  }
  if (failure.code == AMQP_PRECONDITION_FAILED && holds("x-stream-offset")) {
    return {tap.queue + " is no stream queue",
            "Declare one beside it: antipode::rabbitmq::DeclareTap(connection, 1, EXCHANGE)."};
  }
  if (holds("vhost") && !holds("access to queue")) {
    return {user + " may not use the virtual host " + vhost, "Create it, and grant: " + grant};
  }
  if (failure.code == AMQP_ACCESS_REFUSED && holds("queue")) {
    return {user + " may not read " + tap.queue, "Grant it: " + grant};
  }
  if (failure.code == AMQP_ACCESS_REFUSED) {
    return {user + " may not log in", "Give the right user and password in the URL."};
  }
  return {words, "See the broker's log."};
}

}  // namespace antipode::rabbitmq
