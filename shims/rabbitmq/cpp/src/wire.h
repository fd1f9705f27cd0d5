// The frames of one connection: every call ends, and what comes is put together and kept for whoever asks for it.
#ifndef ANTIPODE_RABBITMQ_WIRE_H_
#define ANTIPODE_RABBITMQ_WIRE_H_

#include <amqp.h>
#include <amqp_framing.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "antipode/rabbitmq.h"
#include "call_limit.h"
#include "message.h"

namespace antipode::rabbitmq {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;

// What a broker said of messages that it was given, in its order.
struct Confirm {
  std::uint64_t tag = 0;
  bool multiple = false;
  bool taken = true;  // false: a negative one

  bool Covers(std::uint64_t other) const { return tag == other || (multiple && tag >= other); }
};

// One connection of rabbitmq-c's, owned, with its channels. One thread at a time. Where its calls could not be ended it
// is broken from the beginning.
//
// It takes rabbitmq-c's frames one by one (`amqp_simple_wait_frame_noblock`), because its own functions for messages
// wait without a deadline and stumble over confirms and returns that come in between. Messages are copied out of
// rabbitmq-c's memory, so that this can be given back at once.
class Wire {
 public:
  // `limit`: how long one call may take.
  Wire(amqp_connection_state_t taken, Duration limit);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  amqp_connection_state_t state() const { return state_; }
  Duration limit() const { return limit_; }

  // Why the connection cannot be used any more; nothing while it can.
  const std::optional<Reply>& broken() const { return broken_; }
  // Why this channel cannot be used now; nothing while it can.
  std::optional<Reply> Closed(amqp_channel_t channel) const;

  // Runs a call of rabbitmq-c's that gives a status; a bad one breaks the connection.
  template <class Call>
  Reply Send(const Call& call) {
    const CallLimit limited(guard_, limit_);
    const int status = call();
    return Noted(status, limited.expired());
  }

  // Runs one of rabbitmq-c's calls that wait for the broker's answer, on an open channel.
  template <class Call>
  Reply Ask(amqp_channel_t channel, const Call& call) {
    if (auto closed = Closed(channel)) return *closed;
    return AskAnyway(channel, call);
  }
  template <class Call>
  Reply AskAnyway(amqp_channel_t channel, const Call& call) {
    const CallLimit limited(guard_, limit_);
    const amqp_rpc_reply_t answer = call();
    return NotedAnswer(channel, answer, limited.expired());
  }

  // Reads what comes, one frame, by this time: AMQP_STATUS_TIMEOUT where none did.
  int Pump(Clock::time_point until);
  // Reads what is there already, as far as messages for the application do not pile up: a broker sends them without end
  // where nothing bounds it (`basic.qos`).
  void Drain();

  // No answer came in time, and half of one may come: the connection is given up.
  Reply GiveUp();

  // A channel was opened or closed: nothing that was said of one of that number so far holds. What the broker has
  // forgotten stays, and what came back: nobody else gives it.
  void Forget(amqp_channel_t channel);
  // The broker has taken all unacknowledged messages of the channel back: those that are here already are not given any
  // more.
  void Recovered(amqp_channel_t channel);
  // This consumer's messages are forgotten by the broker as it sends them.
  void ConsumesWithoutAck(amqp_channel_t channel, std::string consumer_tag);
  // The next message is the answer to `basic.get`.
  void Expect(amqp_channel_t channel, const amqp_basic_get_ok_t& method);

  // What came; taken from here by its one user
  std::deque<Incoming> delivered;
  std::deque<Incoming> got;
  std::deque<Incoming> returned;
  std::uint64_t came_back = 0;  // so many have been put there
  std::deque<std::pair<amqp_channel_t, Confirm>> confirms;
  struct Event {
    amqp_channel_t channel;  // 0: the connection
    Reply what;
  };
  std::deque<Event> events;  // a channel or consumer has ended

 private:
  struct Channel {
    std::optional<Incoming> coming;
    std::optional<Incoming> expected;
    std::optional<Reply> closed;
    std::set<std::string> without_ack;  // consumers by their tags
  };

  Reply Noted(int status, bool too_long);
  Reply NotedAnswer(amqp_channel_t channel, const amqp_rpc_reply_t& answer, bool too_long);
  void TakeWhatIsKept();
  void DropDelivered(amqp_channel_t channel);
  void Ended(amqp_channel_t channel, const Reply& why);
  Reply ClosedByBroker(amqp_channel_t channel, const amqp_method_t& method);
  void Break(Reply why);
  void Take(const amqp_frame_t& frame);
  void TakeMethod(amqp_channel_t channel, const amqp_method_t& method);
  void Arrived(Channel& channel);

  const amqp_connection_state_t state_;
  const Duration limit_;
  const pid_t process_;
  int guard_ = -1;  // the socket once more: what is shut down cannot be another one of the same number
  std::optional<Reply> broken_;
  std::map<amqp_channel_t, Channel> channels_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_WIRE_H_
