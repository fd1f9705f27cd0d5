// What a recorded history is told of commands: which keys they changed or read, and the digests of whole values (spec
// HIST-28).
//
// Whole values are those of SET, GET and their like, and counters. Of other commands a history has which key they
// changed, and of other reads that nobody knows which write they saw.
#ifndef ANTIPODE_REDIS_NOTING_H_
#define ANTIPODE_REDIS_NOTING_H_

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/history.h"
#include "antipode/scope.h"
#include "antipode/store.h"
#include "antipode/write_id.h"
#include "commands.h"

namespace antipode::redis {

// The commands of one write, as the application gave them, and what their replies said.
class NotedCommands {
 public:
  // One more; its place.
  std::size_t Add(const Words& words, Kind kind);
  void Heard(std::size_t place, const redisReply& reply);

  // Which keys they changed, in their order; nothing where nobody knows.
  std::optional<std::vector<history::Changed>> Changed(const std::string& store) const;

 private:
  struct Command {
    enum class Reply { kNone, kNil, kInteger, kError, kOther };

    std::vector<std::string> words;
    Kind kind;
    Reply reply = Reply::kNone;
    std::int64_t integer = 0;

    bool Says(std::int64_t number) const { return reply == Reply::kInteger && integer == number; }
  };

  static std::optional<std::vector<history::Changed>> Changed(const std::string& store, const Command& command);
  static std::vector<history::Changed> Set(const std::string& store, const Command& command);

  std::vector<Command> commands_;
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
  NotedReads(std::string store, ScopePtr scope, std::unique_ptr<history::NotedRead> noted);

  const std::string store_;
  const ScopePtr scope_;
  const std::unique_ptr<history::NotedRead> noted_;
  std::vector<history::Seen> seen_;
  std::optional<WriteId> covers_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_NOTING_H_
