// Records a history: what this process's scopes write, read, send and receive (spec HIST-23 to HIST-34).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_RECORDER_H_
#define ANTIPODE_SRC_DIAGNOSTICS_RECORDER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "antipode/shim/read_observer.h"
#include "antipode/shim/write_observer.h"
#include "antipode/store.h"
#include "base/time.h"
#include "diagnostics/history_order.h"
#include "diagnostics/history_writer.h"

namespace antipode ANTIPODE_EXPORT {
namespace history {

// The recording of this process: its name, its file, and the scopes that are in it. One lock, of all recordings, guards
// it. It is never destroyed: operations that are under way refer to it.
class Recorder {
 public:
  explicit Recorder(const std::string& folder);

  // The recording in force; null where there is none.
  static Recorder* InForce() noexcept;

  const std::string& folder() const { return folder_; }

  // A message leaves with this lineage, which names it.
  void Sent(LineageScope& scope, const std::string& message, const Lineage& lineage) noexcept;
  // A message came, with a lineage that names it; or with one of somebody who records nothing.
  void Received(LineageScope& scope, const std::vector<std::string>& messages, const Lineage& lineage) noexcept;
  // What one scope depends on goes into another of this process.
  void Joined(LineageScope& ended, LineageScope& scope) noexcept;
  // Says once of a store that its reads are not recorded, where that is so (HIST-31).
  void NotRead(const Store& store) noexcept;
  // A name for a message.
  std::string NewMessage() { return order_.NewId(); }

  // An operation is begun, by a scope or (null) outside any; nothing where that failed, which is said.
  std::optional<Step> Begin(LineageScope* scope, const Lineage& lineage) noexcept;
  // It has ended.
  void Finish(Step& step, const std::vector<Told>& told, bool certain = true) noexcept;
  // Something of the history could not be recorded.
  void Failed() noexcept;

  // The process ends, or what it did so far is to be whole: the file says so (HIST-25).
  void End() noexcept;
  bool Flush(Duration timeout) { return writer_.Flush(timeout); }

 private:
  friend struct Recordings;

  template <class Action>
  void Safely(const Action& action) noexcept;
  void Put(std::string line);
  std::string GapLine(std::string_view reason, std::uint64_t count);
  std::shared_ptr<Strand> StrandOf(LineageScope& scope);
  std::shared_ptr<Strand> NewStrand(std::string_view kind);

  const std::string folder_;
  const pid_t pid_;
  const std::string tag_;
  Order order_;
  Writer writer_;
  std::uint64_t scopes_ = 0;
  std::set<std::string> unread_;
  bool ended_ = false;
};

// A write is about to be sent, by a scope (null: outside any) that carries this lineage; null where no history is
// recorded.
std::unique_ptr<WriteObserver> NoteWrite(const ScopePtr& scope, const Store& store, const Lineage& lineage) noexcept;

// A read is about to be sent; null where no history is recorded, outside of scopes, and where the store's mode is off.
std::unique_ptr<ReadObserver> NoteRead(const Store& store, const ScopePtr& scope) noexcept;

// Has what the lower rooms say be recorded where a history is; called once.
void Listen() noexcept;

// Waits until what was recorded so far is on disk.
bool Flush(Duration timeout);

// Ends the recording; the next one is another (tests).
void Forget() noexcept;

}  // namespace history
}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_RECORDER_H_
