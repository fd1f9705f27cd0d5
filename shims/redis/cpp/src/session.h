// Our own connection to one server: questions, and pushes by client-side tracking, on one socket.
#ifndef ANTIPODE_REDIS_SESSION_H_
#define ANTIPODE_REDIS_SESSION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "judging.h"
#include "resp.h"
#include "target.h"

namespace antipode::redis {

// Why a question has no answer.
struct Failure {
  bool by_server = false;  // its own error reply; else it is out of reach
  std::string words;

  std::string_view Code() const { return std::string_view(words).substr(0, words.find(' ')); }
};

// An answer, or why there is none.
template <class T>
class SessionReply {
 public:
  SessionReply(T value) : held_(std::in_place_index<0>, std::move(value)) {}             // NOLINT: a value is an answer
  SessionReply(Failure failure) : held_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: and so is a failure

  bool ok() const { return held_.index() == 0; }
  T& operator*() { return std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }
  const Failure& failure() const { return std::get<1>(held_); }

 private:
  std::variant<T, Failure> held_;
};

// One connection, used by one thread at a time. Every call ends within the timeout, the resolving of names aside.
class Session {
 public:
  using Timeout = std::chrono::nanoseconds;

  // Connects; `run_id` then names the server's life.
  static SessionReply<std::shared_ptr<Session>> Open(const Target& target, Timeout timeout);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  void set_timeout(Timeout timeout) { timeout_ = timeout; }
  const std::string& run_id() const { return run_id_; }
  const std::string& version() const { return version_; }
  bool cluster() const { return cluster_; }

  // Sends packed commands in one packet and gives their replies; error replies are values.
  SessionReply<std::vector<Value>> Ask(const std::vector<std::string>& commands);
  // One command's reply; an error reply is a failure.
  SessionReply<Value> Command(const std::vector<std::string_view>& words);

  // Where the server is, and what its marks say of these epochs, in one atomic step.
  //
  // Two commands alone would not do: a resync can replace the data between them, under a live connection.
  SessionReply<ServerState> Look(const std::vector<std::string>& epochs, const std::string& key);

  // Pushes

  // Has every change at the server pushed to this connection; fails where it refuses.
  SessionReply<bool> Track();
  // Called when the server says that all its data were replaced (a full resync, FLUSHALL).
  void OnReset(std::function<void()> on_reset) { on_reset_ = std::move(on_reset); }
  int Descriptor() const { return socket_; }
  // Reads what was pushed, without blocking; whether anything was.
  SessionReply<bool> Pump();

  // Has a call that another thread is in fail now.
  void Interrupt() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  Session(int socket, Timeout timeout) : socket_(socket), timeout_(timeout) {}
  SessionReply<bool> Greet(const Target& target);
  SessionReply<bool> Send(std::string_view data, Clock::time_point deadline);
  SessionReply<bool> Receive(Clock::time_point deadline);
  SessionReply<bool> ReadSome();
  SessionReply<ServerState> LookOnce(const std::vector<std::string>& epochs, const std::string& key);
  SessionReply<ServerState> LookWithoutMarks(const std::string& refused);
  void Drain();
  void Note(const Value& push);

  const int socket_;
  Timeout timeout_;
  Reader reader_;
  bool resp3_ = false;
  bool cluster_ = false;
  bool changed_ = false;
  std::string version_;
  std::string run_id_;
  std::string epoch_;
  std::function<void()> on_reset_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_SESSION_H_
