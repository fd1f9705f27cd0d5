/// \file
/// One write of a wrapped client, from before it is sent until its version is known: what shims record (spec SHIM-6 to
/// SHIM-8).
#ifndef ANTIPODE_SHIM_WRITE_H_
#define ANTIPODE_SHIM_WRITE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/scope.h"
#include "antipode/shim/write_observer.h"
#include "antipode/site.h"
#include "antipode/store.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// A write in flight to a store. It is pending in the current scope until one of its verbs is called; where none is,
/// its end leaves its outcome unknown, and it stays pending: an early return of a shim cannot lose a write (SCOPE-14,
/// SCOPE-17).
class [[nodiscard]] Writing {
 public:
  /// Begins a write to this object, or, in a store of positions, to anything.
  explicit Writing(std::shared_ptr<Store> store, std::string_view key = {}, Site site = Site());
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing();

  /// Make the write pending in the current scope, too, unless it is so already. Called before each further command of a
  /// transaction, pipeline or batch, which several scopes may share; each of them gets what becomes of it (SCOPE-24).
  void JoinScope(const Site& site = Site());

  /// The same for the scope that sends what others queued, commits it or takes the replies, where there is one: theirs
  /// may have ended (SCOPE-24). Called again it does nothing.
  void JoinCommitter();

  /// What may rest beside what is written next: the current scope's lineage as it is now, other writes in flight marked
  /// (SCOPE-16); outside any scope it may be incomplete (SCOPE-32). `lineage_out`: whether values get lineages.
  Lineage Beside(bool lineage_out = true) const;

  /// The write has this version: an object's with a key, a position where the store's shim gives positions. A version
  /// that the wire cannot carry makes the lineage incomplete for the store.
  void Record(const Version& version);

  /// A write that changed nothing takes where the store is now, without the check of plausibility (EPOCH-4).
  void RecordUpperBound(const Ordered& version);

  /// The write happened, and its version cannot be had: the lineage is incomplete for the store (EPOCH-5).
  void RecordIncomplete(std::string_view reason, std::string detail = {});

  /// The write is known not to have happened (a rollback, a refusal by the server).
  void Abandon();

  /// What a recorded history is told of it, by the scope that began it; null where none is recorded.
  WriteObserver* noted() const;

  /// Nobody knows whether the write happened: it stays pending, and what leaves stays marked (SCOPE-17).
  void OutcomeUnknown();

 private:
  // What one scope has of it; no scope outside any.
  struct Part {
    ScopePtr scope;
    Site site;
    PendingPtr pending;
    std::unique_ptr<WriteObserver> noted;
    bool is_late;  // it may have been sent before, so that what the scope knows by then may be newer
  };

  void Join(ScopePtr scope, const Site& site, bool is_late);
  Result<WriteId> Identifier(const Version& version) const;
  void Settle(const Result<WriteId>& id, bool checks);

  const std::shared_ptr<Store> store_;
  const std::string key_;
  std::vector<Part> parts_;  // the first is the scope's that began it
  bool open_ = true;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_WRITE_H_
