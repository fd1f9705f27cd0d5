// Reading a tap: one connection to a stream queue, by the thread that asks that server.
#ifndef ANTIPODE_RABBITMQ_READER_H_
#define ANTIPODE_RABBITMQ_READER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "antipode/rabbitmq.h"
#include "broker.h"
#include "tap_memory.h"
#include "wire.h"

namespace antipode::rabbitmq {

// A connection that reads a tap from where its memory ends, at first from the last messages that it remembers.
//
// It first asks for the stream's last chunk, because a start behind the stream's end would skip what comes until then:
// the stream may have been declared anew meanwhile. Then it reads from where the memory says. Messages that are read
// twice are the same as once.
class TapReader {
 public:
  // Connects and begins to read, within the time. A failure by the broker: it is there and will not let the tap be
  // read.
  static std::variant<std::unique_ptr<TapReader>, Failure> Open(const Tap& tap, TapMemory& memory, Duration timeout);

  int socket() const { return amqp_get_sockfd(wire_.state()); }

  // Reads what is there, without waiting; whether something came that somebody waits for.
  bool Pump();
  // Asks the broker for a sign of life where none came of late, and reads what is there.
  void Check();
  // Why it cannot be read any more; nothing while it can.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  TapReader(amqp_connection_state_t state, const Tap& tap, TapMemory& memory, Duration timeout);

  // Consumes from an offset, or from the last chunk.
  void Consume(std::optional<std::int64_t> offset, std::uint16_t prefetch);
  void ReadFrom(std::int64_t offset);
  bool Take(const Envelope& envelope);
  void Fail(Failure why);
  void LookForEnd();
  template <class Call>
  bool Ask(const Call& call);

  const Tap tap_;
  TapMemory& memory_;
  Wire wire_;
  amqp_channel_t channel_ = 1;
  bool probing_ = true;
  bool first_ = false;
  std::int64_t chunk_ = 0;
  int unacknowledged_ = 0;
  Clock::time_point heard_at_ = Clock::now();
  std::optional<Failure> failure_;
};

// Reads a tap for a moment: what is wrong with it, if anything.
std::optional<Failure> Probe(const Tap& tap, Duration timeout);

// What a broker's refusal means, and what cures it.
struct Cure {
  std::string what;
  std::string cure;
};
Cure CureOf(const Tap& tap, const Failure& failure);

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_READER_H_
