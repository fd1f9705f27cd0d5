// An end for calls of rabbitmq-c that could wait for ever: a broker that reads nothing stops a send, half a message a
// read.
#ifndef ANTIPODE_RABBITMQ_CALL_LIMIT_H_
#define ANTIPODE_RABBITMQ_CALL_LIMIT_H_

#include <chrono>

namespace antipode::rabbitmq {

// While it lives a call may run; past its time the socket is shut down by a thread of ours, and the call fails.
class CallLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // `socket`: nobody closes it meanwhile (the caller's own duplicate); a negative one is left alone.
  CallLimit(int socket, std::chrono::nanoseconds limit);
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;
  ~CallLimit();

  int socket() const { return socket_; }
  Clock::time_point due() const { return due_; }
  bool expired() const { return Clock::now() >= due_; }

 private:
  const int socket_;
  const Clock::time_point due_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_CALL_LIMIT_H_
