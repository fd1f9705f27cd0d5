/// \file
/// Recorded histories: what shims tell of the writes and reads that go through them (spec HIST-23 to HIST-34).
///
/// Nothing here fails, waits or asks a server. Where no history is recorded (`ANTIPODE_HISTORY` is empty) each call is
/// one look at the setting.
#ifndef ANTIPODE_HISTORY_H_
#define ANTIPODE_HISTORY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "antipode/write_id.h"

namespace antipode {

class Store;

namespace history {

/// What a key holds, as far as a history is told; values have no digests here (HIST-37).
enum class Content { kUnknown, kNothing, kSomething };

/// What a write did to one key.
struct Changed {
  std::string key;
  /// What the key holds from now on.
  Content content = Content::kUnknown;
  /// Whether it may go by itself.
  bool expires = false;
};

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

/// One write, from before it is sent until it is known what became of it; where nobody says so, that is unknown.
class NotedWrite {
 public:
  explicit NotedWrite(std::unique_ptr<Operation> operation) noexcept;
  NotedWrite(const NotedWrite&) = delete;
  NotedWrite& operator=(const NotedWrite&) = delete;
  ~NotedWrite();

  /// What it does to which keys, in their order; an empty list where it changes none, nothing where nobody knows.
  void Changes(std::optional<std::vector<Changed>> changed) noexcept;
  /// It has happened, with this identifier where there is one. `key`: the object's, where it is one's.
  void Done(const std::optional<WriteId>& write_id, std::string_view key = {}) noexcept;
  /// Nobody knows whether it happened.
  void Unknown(std::string_view key = {}) noexcept;
  /// It did not happen.
  void NotDone() noexcept;

 private:
  const std::unique_ptr<Operation> operation_;
  std::optional<std::vector<Changed>> changed_;
};

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

/// A write is about to be sent, by a scope (null: outside any) that carries this lineage; null where no history is
/// recorded.
std::unique_ptr<NotedWrite> NoteWrite(const ScopePtr& scope, const Store& store, const Lineage& lineage) noexcept;

/// A read is about to be sent; null where no history is recorded, outside of scopes, and where the store's mode is off.
std::unique_ptr<NotedRead> NoteRead(const Store& store, const ScopePtr& scope) noexcept;

/// What one scope depends on goes into another of this process (HIST-26); one of them may be null.
void Joined(const ScopePtr& ended, const ScopePtr& scope) noexcept;

}  // namespace history
}  // namespace antipode

#endif  // ANTIPODE_HISTORY_H_
