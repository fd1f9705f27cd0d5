#include "wire.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "octets.h"

namespace antipode::rabbitmq {
namespace {

constexpr int kAtOnce = 1000;  // frames that are read before anything else is done
constexpr std::size_t kMostDelivered = 1000;
constexpr std::size_t kMostReturned = 1000;
constexpr Duration kFarewell = std::chrono::seconds(1);

}  // namespace

Reply Reply::OfStatus(int status, std::string words) {
  Reply made;
  made.status_ = status;
  made.words_ = std::move(words);
  if (status != AMQP_STATUS_OK && made.words_.empty()) made.words_ = amqp_error_string2(status);
  return made;
}

Reply Reply::OfBroker(int code, std::string words) {
  Reply made;
  made.code_ = code;
  made.words_ = std::move(words);
  return made;
}

Wire::Wire(amqp_connection_state_t taken, Duration limit)
    : state_(taken), limit_(std::max<Duration>(limit, std::chrono::milliseconds(1))), process_(getpid()) {
  const int socket = amqp_get_sockfd(state_);
  if (socket >= 0) guard_ = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (socket >= 0 && guard_ < 0) {
    Break(Reply::OfStatus(AMQP_STATUS_SOCKET_ERROR,
                          std::string("its socket cannot be watched: ") + std::strerror(errno)));
  }
  const timeval longest = TimevalOf(limit_);  // for what the application calls by itself
  if (amqp_get_rpc_timeout(state_) == nullptr) amqp_set_rpc_timeout(state_, &longest);
}

Wire::~Wire() {
  if (process_ == getpid()) {  // else it is the parent's connection, which goes on
    if (!broken_) {
      const CallLimit limited(guard_, std::min(limit_, kFarewell));
      amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
    }
    amqp_destroy_connection(state_);
  } else {
    close(amqp_get_sockfd(state_));
  }
  if (guard_ >= 0) close(guard_);
}

std::optional<Reply> Wire::Closed(amqp_channel_t channel) const {
  if (broken_) return broken_;
  const auto found = channels_.find(channel);
  return found == channels_.end() ? std::nullopt : found->second.closed;
}

void Wire::Break(Reply why) {
  if (broken_) return;
  broken_ = std::move(why);
  events.push_back({0, *broken_});
}

Reply Wire::GiveUp() {
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(limit_).count();
  Break(Reply::OfStatus(AMQP_STATUS_CONNECTION_CLOSED,
                        "the broker did not answer within " + std::to_string(took) + " ms"));
  return *broken_;
}

Reply Wire::Noted(int status, bool too_long) {
  if (status == AMQP_STATUS_OK) return {};
  if (status == AMQP_STATUS_TIMEOUT || too_long) return GiveUp();
  Reply reply = Reply::OfStatus(status);
  Break(reply);
  return reply;
}

Reply Wire::NotedAnswer(amqp_channel_t channel, const amqp_rpc_reply_t& answer, bool too_long) {
  switch (answer.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return {};
    case AMQP_RESPONSE_SERVER_EXCEPTION: {
      Reply reply = ClosedByBroker(channel, answer.reply);
      if (!broken_) Ended(channel, reply);
      return reply;
    }
    default: {
      if (answer.library_error == AMQP_STATUS_TIMEOUT || too_long) return GiveUp();
      Reply reply =
          Reply::OfStatus(answer.library_error == AMQP_STATUS_OK ? AMQP_STATUS_UNEXPECTED_STATE : answer.library_error);
      Break(reply);
      return reply;
    }
  }
}

// The broker has closed a channel, and takes back what was not acknowledged.
void Wire::Ended(amqp_channel_t channel, const Reply& why) {
  Channel& ended = channels_[channel];
  ended.closed = why;
  ended.coming.reset();
  ended.expected.reset();
  DropDelivered(channel);
}

// Confirms that a channel or the connection was closed; what was said.
Reply Wire::ClosedByBroker(amqp_channel_t channel, const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto& said = *static_cast<const amqp_channel_close_t*>(method.decoded);
    const Reply reply =
        Reply::OfBroker(said.reply_code, std::to_string(said.reply_code) + " " + std::string(View(said.reply_text)));
    amqp_channel_close_ok_t confirmed{};
    if (!Send([&] { return amqp_send_method(state_, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &confirmed); }).ok()) {
      return reply;
    }
    return reply;
  }
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto& said = *static_cast<const amqp_connection_close_t*>(method.decoded);
    Reply reply =
        Reply::OfBroker(said.reply_code, std::to_string(said.reply_code) + " " + std::string(View(said.reply_text)));
    amqp_connection_close_ok_t confirmed{};
    {
      const CallLimit limited(guard_, limit_);
      amqp_send_method(state_, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &confirmed);
    }
    Break(reply);
    return reply;
  }
  return Reply::OfStatus(AMQP_STATUS_UNEXPECTED_STATE);
}

int Wire::Pump(Clock::time_point until) {
  if (broken_) return broken_->status() == AMQP_STATUS_OK ? AMQP_STATUS_CONNECTION_CLOSED : broken_->status();
  const Duration wait = std::max<Duration>(until - Clock::now(), Duration::zero());
  const timeval most = TimevalOf(wait);
  amqp_frame_t frame{};
  int status = AMQP_STATUS_OK;
  {
    const CallLimit limited(guard_, wait + limit_);  // it may have to send a heartbeat
    status = amqp_simple_wait_frame_noblock(state_, &frame, &most);
  }
  if (status == AMQP_STATUS_TIMEOUT) return status;
  if (status != AMQP_STATUS_OK) {
    Break(Reply::OfStatus(status));
    return status;
  }
  Take(frame);
  amqp_maybe_release_buffers(state_);
  return AMQP_STATUS_OK;
}

void Wire::Drain() {
  for (int left = kAtOnce; left > 0 && !broken_ && delivered.size() < kMostDelivered; --left) {
    if (Pump(Clock::now()) != AMQP_STATUS_OK) return;
  }
}

// rabbitmq-c keeps what came while it waited for an answer: all that, and nothing else, was said before.
void Wire::TakeWhatIsKept() {
  while (!broken_ && amqp_frames_enqueued(state_) != 0) Pump(Clock::now());
}

void Wire::Forget(amqp_channel_t channel) {
  TakeWhatIsKept();
  DropDelivered(channel);
  const auto of_channel = [channel](const auto& each) { return each.channel == channel; };
  events.erase(std::remove_if(events.begin(), events.end(), of_channel), events.end());
  const auto confirms_it = [channel](const auto& each) { return each.first == channel; };
  confirms.erase(std::remove_if(confirms.begin(), confirms.end(), confirms_it), confirms.end());
  channels_[channel] = Channel();
}

void Wire::Recovered(amqp_channel_t channel) {
  TakeWhatIsKept();
  DropDelivered(channel);
}

void Wire::DropDelivered(amqp_channel_t channel) {
  const auto is_stale = [channel](const Incoming& each) { return each.envelope->channel == channel && !each.no_ack; };
  delivered.erase(std::remove_if(delivered.begin(), delivered.end(), is_stale), delivered.end());
}

void Wire::ConsumesWithoutAck(amqp_channel_t channel, std::string consumer_tag) {
  channels_[channel].without_ack.insert(std::move(consumer_tag));
}

void Wire::Expect(amqp_channel_t channel, const amqp_basic_get_ok_t& method) {
  channels_[channel].expected.emplace(Incoming::Of(channel, method));
}

void Wire::Take(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) {
    TakeMethod(frame.channel, frame.payload.method);
    return;
  }
  Channel& channel = channels_[frame.channel];
  bool fits = true;
  if (frame.frame_type == AMQP_FRAME_HEADER) {
    if (!channel.coming) channel.coming = std::exchange(channel.expected, std::nullopt);
    if (!channel.coming) return;  // of something that this object was not asked for
    const auto* const properties = static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
    fits = properties != nullptr && channel.coming->TakeProperties(*properties, frame.payload.properties.body_size);
  } else if (frame.frame_type == AMQP_FRAME_BODY) {
    if (!channel.coming) return;
    fits = channel.coming->TakeBody(frame.payload.body_fragment);
  } else {
    return;
  }
  if (!fits) {
    Break(Reply::OfStatus(AMQP_STATUS_BAD_AMQP_DATA));
  } else if (channel.coming->IsWhole()) {
    Arrived(channel);
  }
}

void Wire::Arrived(Channel& channel) {
  Incoming whole = std::move(*channel.coming);
  channel.coming.reset();
  switch (whole.kind) {
    case Incoming::Kind::kDelivered:
      if (channel.closed && !whole.no_ack) return;  // it cannot be settled, and comes again
      delivered.push_back(std::move(whole));
      return;
    case Incoming::Kind::kGot:
      got.push_back(std::move(whole));
      return;
    case Incoming::Kind::kReturned:
      whole.number = came_back++;
      returned.push_back(std::move(whole));
      if (returned.size() > kMostReturned) returned.pop_front();
      return;
  }
}

void Wire::TakeMethod(amqp_channel_t number, const amqp_method_t& method) {
  Channel& channel = channels_[number];
  switch (method.id) {
    case AMQP_BASIC_DELIVER_METHOD: {
      const auto& said = *static_cast<const amqp_basic_deliver_t*>(method.decoded);
      channel.coming.emplace(Incoming::Of(number, said));
      channel.coming->no_ack = channel.without_ack.count(std::string(View(said.consumer_tag))) != 0;
      return;
    }
    case AMQP_BASIC_RETURN_METHOD:
      channel.coming.emplace(Incoming::Of(number, *static_cast<const amqp_basic_return_t*>(method.decoded)));
      return;
    case AMQP_BASIC_ACK_METHOD: {
      const auto& said = *static_cast<const amqp_basic_ack_t*>(method.decoded);
      confirms.emplace_back(number, Confirm{said.delivery_tag, said.multiple != 0, true});
      break;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto& said = *static_cast<const amqp_basic_nack_t*>(method.decoded);
      confirms.emplace_back(number, Confirm{said.delivery_tag, said.multiple != 0, false});
      break;
    }
    case AMQP_BASIC_CANCEL_METHOD: {
      const auto& said = *static_cast<const amqp_basic_cancel_t*>(method.decoded);
      const std::string tag(View(said.consumer_tag));
      events.push_back({number, Reply::OfBroker(AMQP_NOT_FOUND, "the broker cancelled the consumer " + tag)});
      return;
    }
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const Reply reply = ClosedByBroker(number, method);
      Ended(number, reply);
      events.push_back({number, reply});
      return;
    }
    case AMQP_CONNECTION_CLOSE_METHOD:
      ClosedByBroker(number, method).ok();
      return;
    default:
      return;
  }
  if (confirms.size() > kMostReturned) confirms.pop_front();  // nobody waits for them
}

}  // namespace antipode::rabbitmq
