// Tells a recorded history of commands: which keys they changed, and which keys a read found empty (spec HIST-28,
// HIST-37).
//
// Of SET and its like, and of counters, a history has that the key holds something. Of other commands it has which key
// they changed. Of a read that found something nobody knows which write it saw.
#ifndef ANTIPODE_REDIS_NOTING_H_
#define ANTIPODE_REDIS_NOTING_H_

#include <hiredis/hiredis.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "antipode/shim/read_observer.h"
#include "commands.h"

namespace antipode::redis {

// One command of a write.
struct NotedCommand {
  // What it does to which keys; nothing where nobody knows.
  std::optional<std::vector<history::KeyChange>> changes;
  // The kind of reply, besides an error, by which it changed nothing: nil, or the number 0.
  int nothing = REDIS_REPLY_ERROR;
  // Whether the server has it for a write.
  bool is_write = false;
};

// The commands of one write, and what their replies said.
class NotedCommands {
 public:
  // One more; its place.
  std::size_t Add(const Words& words, Kind kind);
  void Heard(std::size_t place, const redisReply& reply);

  // Which keys they changed, in their order; nothing where nobody knows.
  std::optional<std::vector<history::KeyChange>> Changed() const;

 private:
  std::vector<NotedCommand> commands_;
};

// What a read found under which keys; nothing where it ended with an error. `is_queued`: the value comes with an EXEC,
// and nobody looks there.
std::vector<ReadValue> ValuesIn(const Words& words, const redisReply& reply, bool is_queued);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_NOTING_H_
