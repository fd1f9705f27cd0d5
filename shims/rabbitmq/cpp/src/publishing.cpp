// Publishing: the lineage goes into a copy of the headers; with `track` the message is a write of its own.
#include <utility>

#include "headers.h"
#include "inside.h"
#include "octets.h"
#include "stamping.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kLongestShortString = 255;

Published NotSent(Reply why) { return {Outcome::kNotSent, std::move(why)}; }

}  // namespace

// One message on its way.
struct Connection::Inside::Parcel {
  amqp_channel_t channel;
  std::string_view exchange;
  std::string_view routing_key;
  std::string_view body;
  bool mandatory;
  const amqp_basic_properties_t* properties;
  // With confirms: its number, and that of the first message which may be this one coming back.
  std::uint64_t tag = 0;
  std::uint64_t came_back = 0;
};

Published Connection::Inside::Publish(amqp_channel_t channel, std::string_view exchange, std::string_view routing_key,
                                      std::string_view body, const amqp_basic_properties_t* properties, bool mandatory,
                                      const Site& site) {
  ReturnDue();
  // What the broker has said meanwhile: it may have closed the connection, and then the message would be lost for
  // certain.
  wire_.Drain();
  if (auto closed = wire_.Closed(channel)) return NotSent(*closed);
  const std::shared_ptr<Store>& store = told_->store;
  const int frame_max = amqp_get_frame_max(state());
  // With mode=off what came in is passed on, nothing added (PROP-26).
  const bool tracks = told_->track && store->records();
  Properties stamped(properties);
  std::optional<WriteId> own;
  const std::string key(!exchange.empty()      ? exchange
                        : !routing_key.empty() ? routing_key
                                               : std::string_view(store->name()));
  if (tracks) {
    Result<WriteId> made = store->MakeWriteId(key, Opaque{Mark(stamped)});
    if (!made.ok()) return Published(made.error());
    own = *made;
  }
  const Result<void> done = Stamp(*told_, stamped, own, frame_max, site);
  if (!done.ok()) return Published(done.error());
  // rabbitmq-c finds out what cannot be written only between two frames, and leaves the channel in disorder.
  const bool fits = exchange.size() <= kLongestShortString && routing_key.size() <= kLongestShortString &&
                    FitsAFrame(stamped, frame_max);
  if (!fits) return NotSent(Reply::OfStatus(AMQP_STATUS_TABLE_TOO_BIG));
  Parcel parcel{channel, exchange, routing_key, body, mandatory, &stamped.get()};
  if (!own) return Send(parcel);
  auto write = std::make_unique<Writing>(store, key, site);
  Published published = Send(parcel);
  const Opaque version = *own->opaque();
  switch (published.outcome()) {
    case Outcome::kConfirmed:
      write->Record(version);
      break;
    case Outcome::kSent:
      if (channels_[channel].transactional) {
        channels_[channel].sent.push_back({std::move(write), version});
      } else {
        write->Record(version);
      }
      break;
    case Outcome::kReturned:
    case Outcome::kNotSent:
      write->Abandon();
      break;
    case Outcome::kUnknown:
      write->OutcomeUnknown();
      break;
  }
  return published;
}

Published Connection::Inside::Send(Parcel& parcel) {
  Channel& channel = channels_[parcel.channel];
  parcel.came_back = wire_.came_back;
  const Reply sent = wire_.Send([&] {
    return amqp_basic_publish(state(), parcel.channel, Octets(parcel.exchange), Octets(parcel.routing_key),
                              parcel.mandatory ? 1 : 0, 0, parcel.properties, Octets(parcel.body));
  });
  if (!sent.ok()) return {Outcome::kUnknown, sent};
  if (!channel.confirms) return {Outcome::kSent, sent};
  parcel.tag = ++channel.published;
  return WaitForConfirm(parcel);
}

Published Connection::Inside::WaitForConfirm(Parcel& parcel) {
  const Clock::time_point deadline = Clock::now() + wire_.limit();
  while (true) {
    while (!wire_.confirms.empty()) {
      const auto [channel, confirm] = wire_.confirms.front();
      wire_.confirms.pop_front();
      if (channel != parcel.channel) continue;
      if (!confirm.Covers(parcel.tag)) {  // of one that was given up before, as all that came back until now
        parcel.came_back = wire_.came_back;
        continue;
      }
      if (!confirm.taken) {
        return {Outcome::kUnknown, Reply::OfBroker(AMQP_INTERNAL_ERROR, "the broker could not take it")};
      }
      if (const auto why = TakeReturned(parcel)) return {Outcome::kReturned, *why};
      return {Outcome::kConfirmed, {}};
    }
    if (auto closed = wire_.Closed(parcel.channel)) return {Outcome::kUnknown, *closed};
    if (wire_.Pump(deadline) == AMQP_STATUS_TIMEOUT) return {Outcome::kUnknown, Reply::OfStatus(AMQP_STATUS_TIMEOUT)};
  }
}

// The broker's words, where the message came back: it says so before it confirms it.
std::optional<Reply> Connection::Inside::TakeReturned(const Parcel& parcel) {
  for (auto each = wire_.returned.begin(); parcel.mandatory && each != wire_.returned.end(); ++each) {
    if (each->number < parcel.came_back || !IsThis(*each, parcel)) continue;
    Reply why = Reply::OfBroker(each->code, std::to_string(each->code) + " " + each->words);
    wire_.returned.erase(each);
    return why;
  }
  return std::nullopt;
}

// Whether a message that came back is this one: by its mark, else by all that is seen of it.
bool Connection::Inside::IsThis(const Incoming& returned, const Parcel& parcel) const {
  const Envelope& envelope = returned.envelope;
  return envelope->channel == parcel.channel && View(envelope->exchange) == parcel.exchange &&
         View(envelope->routing_key) == parcel.routing_key && envelope.body() == parcel.body &&
         (!told_->track || MarkOf(envelope->message.properties) == MarkOf(*parcel.properties));
}

}  // namespace antipode::rabbitmq
