// Tells a recorded history of commands: which keys they changed, and which keys a read found empty (spec HIST-28,
// HIST-37).
//
// Of SET and its like, and of counters, a history has that the key holds something. Of other commands it has which key
// they changed. Of a read that found something nobody knows which write it saw.
#ifndef ANTIPODE_REDIS_NOTING_H_
#define ANTIPODE_REDIS_NOTING_H_

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "antipode/scope.h"
#include "antipode/shim/history.h"
#include "antipode/store.h"
#include "antipode/write_id.h"
#include "commands.h"

namespace antipode::redis {

// One command of a write.
struct NotedCommand {
  // What it does to which keys; nothing where nobody knows.
  std::optional<std::vector<history::Changed>> changes;
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
  std::optional<std::vector<history::Changed>> Changed() const;

 private:
  std::vector<NotedCommand> commands_;
};

// One read, or those of one batch and scope; told when the last of them goes.
class NotedReads {
 public:
  // Null where no history is recorded, and outside of scopes.
  static std::shared_ptr<NotedReads> For(const Store& store);
  NotedReads(const NotedReads&) = delete;
  NotedReads& operator=(const NotedReads&) = delete;
  ~NotedReads();

  // The scope in which they were begun.
  const ScopePtr& scope() const { return scope_; }
  // The application gets this reply. `is_queued`: the value comes with an EXEC, and nobody looks there.
  void Came(const Words& words, const redisReply& reply, bool is_queued);
  // The position that goes into the lineage of whoever depends on them.
  void Covers(const WriteId& position) { covers_ = position; }

 private:
  NotedReads(ScopePtr scope, std::unique_ptr<history::NotedRead> noted);

  const ScopePtr scope_;
  const std::unique_ptr<history::NotedRead> noted_;
  std::vector<history::Seen> seen_;
  std::optional<WriteId> covers_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_NOTING_H_
