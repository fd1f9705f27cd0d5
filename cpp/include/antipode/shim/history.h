/// \file
/// Recorded histories: what shims tell of the writes and reads that go through them (spec HIST-23 to HIST-34).
///
/// Nothing here fails, waits or asks a server. Where no history is recorded (`ANTIPODE_HISTORY` is empty) each call is
/// one look at the setting.
#ifndef ANTIPODE_SHIM_HISTORY_H_
#define ANTIPODE_SHIM_HISTORY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/scope.h"
#include "antipode/shim/write_observer.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

class Store;

namespace history {

/// What a read found under one key.
struct Seen {
  std::string key;
  /// What it held.
  Content content = Content::kUnknown;
  /// The write that the value itself is, exactly, where the value says so.
  std::optional<WriteId> version = {};
};

/// Whether a history is recorded now.
bool IsRecorded() noexcept;

class Operation;

/// One read, from before it is sent until its reply is there; where nobody says so, there is none.
class NotedRead {
 public:
  explicit NotedRead(std::unique_ptr<Operation> operation) noexcept;
  NotedRead(const NotedRead&) = delete;
  NotedRead& operator=(const NotedRead&) = delete;
  ~NotedRead();

  /// The reply has come. `covers`: the position that goes into the lineage of whoever depends on it (SHIM-13).
  void Over(const std::vector<Seen>& seen, const std::optional<WriteId>& covers = std::nullopt) noexcept;

 private:
  const std::unique_ptr<Operation> operation_;
};

/// A read is about to be sent; null where no history is recorded, outside of scopes, and where the store's mode is off.
std::unique_ptr<NotedRead> NoteRead(const Store& store, const ScopePtr& scope) noexcept;

/// What one scope depends on goes into another of this process (HIST-26); one of them may be null.
void Joined(const ScopePtr& ended, const ScopePtr& scope) noexcept;

}  // namespace history
}  // namespace antipode

#endif  // ANTIPODE_SHIM_HISTORY_H_
