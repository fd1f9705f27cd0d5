// One write, or those of one batch, from before they are sent until their position is in the scope.
#ifndef ANTIPODE_REDIS_WRITE_CALL_H_
#define ANTIPODE_REDIS_WRITE_CALL_H_

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/shim/write.h"
#include "antipode/site.h"
#include "binding.h"
#include "info.h"
#include "noting.h"

namespace antipode::redis {

class WriteCall {
 public:
  WriteCall(Binding& binding, const Site& site);

  // The scope in which it was begun.
  const ScopePtr& scope() const { return owners_.front().scope; }
  // One more of its commands is of the current scope, which may be another (SCOPE-24).
  void JoinScope(const Site& site);
  // The current scope sends it, or takes its replies.
  void JoinCommitter();
  // Part of it is a command that may have written also where it ended with an error.
  void NotCertain() { certain_ = false; }
  // It was, or is now, on its way.
  void Sent() { sent_ = true; }
  // The question for its position went with it.
  void Asked() { asked_ = true; }
  // The lineage's text that rests beside what it writes now; empty where none does.
  std::string TextBeside() const;
  // One of its commands read values, too: what rested beside them.
  void SawBeside(const Beside& beside);
  // One of its commands, for a recorded history: its place in the write; nothing where none is recorded.
  std::optional<std::size_t> Note(const Words& words, Kind kind);
  // The same of a command in a MULTI, whose reply comes with EXEC.
  std::optional<std::size_t> NoteInMulti(const Words& words, Kind kind);
  // The reply to one of its commands.
  void Heard(const redisReply& reply, std::optional<std::size_t> noted);
  // The reply to its EXEC; and the places of its commands there, nothing for others' and where they are not known.
  void HeardExec(const redisReply& reply, const std::vector<std::optional<std::size_t>>& noted);
  // The answer to the question behind it; null where none came.
  void Answered(const redisReply* answer);
  // The connection broke.
  void Lost();
  // It did not happen.
  void Abandon();
  // It happened, and no question was asked.
  void Unasked(const std::string& why);

 private:
  // Who is told what it read and wrote.
  struct Owner {
    ScopePtr scope;
    std::shared_ptr<ReadingBlock> reading;
    Site site;
  };

  void Own(const Site& site);
  void TellHistory();
  void Place(const Replication& now);
  void Without(const Replication& now);
  void Incomplete(std::string_view reason, std::string detail);
  void CoverReads(const std::optional<Ordered>& position);

  Binding& binding_;
  std::vector<Owner> owners_;
  Writing writing_;
  NotedCommands commands_;
  bool has_unknown_ = false;  // of its commands in a MULTI nobody knows what they changed
  bool certain_ = true;
  bool sent_ = false;
  bool asked_ = false;
  bool open_ = true;
  bool changed_ = false;   // a reply says that something was changed
  bool happened_ = false;  // a reply was none of those that say that nothing was
};

using WritePtr = std::shared_ptr<WriteCall>;

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_WRITE_CALL_H_
