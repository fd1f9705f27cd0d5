/// \file
/// One read of a wrapped client: what it waits for, and who is told what it returned (spec SHIM-54).
#ifndef ANTIPODE_SHIM_READ_H_
#define ANTIPODE_SHIM_READ_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/barrier_result.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/reading.h"
#include "antipode/result.h"
#include "antipode/scope.h"
#include "antipode/shim/read_observer.h"
#include "antipode/shim/server.h"
#include "antipode/site.h"
#include "antipode/store.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// What a shim knows of a read before it is sent.
struct ReadOptions {
  /// Whether it waits for what its scope knows: `wait_on_read` of its wrap. A block of reads may say so besides.
  bool waits = false;
  /// Whether what it returns is collected: not where another read, or a write, does that for it.
  bool collects = true;
  /// Whether dry-run and a recorded history are told of it: not where a write reads, too.
  bool is_told = true;
  /// Whether it surely reads data, so that dry-run follows it.
  bool is_sure = true;
  /// In a store of objects those that it reads, as write identifiers name them; nothing where nobody knows them.
  std::optional<std::vector<std::string>> keys = std::nullopt;
};

/// One read, from before it is sent until its reply is there. A shim says once what it returned; what it waits for
/// (BAR-50, BAR-51), what a `Reading` and automatic merging take of it (SHIM-13), and what dry-run (REC-12) and a
/// recorded history (HIST-28) are told is decided here.
///
///     Read read(store, {wait_on_read, true, true, true, {{key}}}, site);
///     if (auto waited = read.Wait(server, timeout); !waited.ok()) return waited.error();
///     auto reply = …;  // the read itself
///     if (read.is_observed()) read.Returned({server, {ReadValue{…}}});
class Read {
 public:
  /// It is about to be sent, by the current scope and in the current block of reads.
  Read(std::shared_ptr<Store> store, const ReadOptions& options, Site site = Site());
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;
  /// It is over; where no reply came, observers hear that by it.
  ~Read();

  /// Whether dry-run or a recorded history may want to hear of reads of this store now.
  static bool IsHeard(const Store& store);

  /// The scope that it is made in; null outside any.
  const ScopePtr& scope() const { return scope_; }
  /// Whether it may have to wait, by the time it is sent.
  bool may_wait() const;
  /// Whether somebody wants to know what its values depend on: versions, positions and lineages at rest.
  bool collects() const { return reading_ != nullptr || merges_; }
  /// Whether dry-run or a recorded history hears of it.
  bool is_told() const { return !observers_.empty(); }
  /// Whether anybody wants to know what it returns.
  bool is_observed() const { return collects() || is_told(); }
  /// Whether another one, sent with it, is of the same scope and block: it waits for the same.
  bool IsLike(const Read& other) const { return scope_ == other.scope_ && after_ == other.after_; }

  // What it waits for

  /// Return the writes to its own store that it must see before it is sent. None where nothing waits, as in dry-run and
  /// off.
  ///
  /// Fails, by the policies, where the lineage has writes to that store under a misspelt name, which no server can
  /// show: the read is not to be sent then (BAR-6, BAR-51).
  Result<std::vector<WriteId>> Required() const;

  /// Wait by the engine until its server shows what it must see first.
  ///
  /// The request's own deadline tightens `timeout`. Return whether nothing is missing; not where the policies let it go
  /// on without that. Fails with what a barrier says that waited in vain, by the policies.
  Result<bool> Wait(const std::shared_ptr<Server>& server, std::chrono::nanoseconds timeout) const;

  /// What the policies say of it where it waited in vain; nothing where it goes on. `judged`: the answer of its server,
  /// late or unproven, with the store and server and how long the read waited as its reason. The error has the code of
  /// that answer (OBS-15).
  Result<void> Refuse(StoreResult judged) const;

  /// The same of a read of a moment that is past, which no wait makes newer: unproven, with the code AP514 (SHIM-48).
  /// `words`: of which moment, and the way round.
  Result<void> RefusePast(const std::string& words) const;

  // What it returned

  /// Tell everybody what it returned. Called once.
  void Returned(const ReadReply& reply);

  /// Tell observers alone: what the values depend on is told by `Saw`, once for all reads of a batch.
  void Told(const ReadReply& reply) noexcept;

  /// Tell observers the position that covers its values, where it comes later than they do.
  void Covered(const WriteId& position) noexcept;

  /// Add to the lineages that are collected: what covers a value, and what rests beside it.
  void Saw(const std::vector<WriteId>& ids, const Lineage& lineage = {}) const;

  /// Mark the lineages that are collected: nobody can tell what a value depends on.
  void Mark() const;

  /// It is over for observers, before its own end.
  void End() noexcept { observers_.clear(); }

 private:
  const std::shared_ptr<Store> store_;
  const Site site_;
  const ScopePtr scope_;
  const std::shared_ptr<ReadingBlock> after_;    // it may say what the read must see first
  const std::shared_ptr<ReadingBlock> reading_;  // that collects; null where none does
  const bool waits_;                             // for what the scope knows
  bool merges_ = false;
  std::vector<std::unique_ptr<ReadObserver>> observers_;
};

/// Blocks until one server has shown every write of the lineage to its store, for this long at most; nothing is
/// enforced.
StoreResult WaitForServer(const std::shared_ptr<Server>& server, const Lineage& lineage,
                          std::chrono::nanoseconds timeout);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_READ_H_
