/// \file
/// Scopes: the lineage of one request, message or task (spec SCOPE).
#ifndef ANTIPODE_SCOPE_H_
#define ANTIPODE_SCOPE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/gap.h"
#include "antipode/lineage.h"
#include "antipode/result.h"
#include "antipode/site.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

class Carrier;
class LineageScope;

/// The scope that threads share; null where there is none.
using ScopePtr = std::shared_ptr<LineageScope>;

/// What `Remove` took out, and which of the named writes the scope still covers.
struct Removal {
  Lineage lineage;
  std::vector<WriteId> still_covered;
};

/// A delivered message as the shim of its queue knows it; asked by any thread.
class DeliveredMessage {
 public:
  DeliveredMessage() = default;
  DeliveredMessage(const DeliveredMessage&) = delete;
  DeliveredMessage& operator=(const DeliveredMessage&) = delete;
  virtual ~DeliveredMessage() = default;

  /// Why it cannot go back to its queue now; empty where it can.
  virtual std::string Refusal() const = 0;
};

/// The message that a scope was opened for; a barrier's `redeliver` gives it back.
struct Delivery {
  bool can_redeliver = false;
  std::string detail;
  /// Where it may be settled while its scope is open; null otherwise.
  std::shared_ptr<const DeliveredMessage> message = nullptr;

  /// Why it cannot go back now; empty where it can.
  std::string Refusal() const {
    return !can_redeliver ? detail : message != nullptr ? message->Refusal() : std::string();
  }
};

/// What opened a scope, for findings.
enum class ScopeKind { kRoot, kRequest, kMessage, kDetached };

/// `root`, `request`, `message`, `detached`.
std::string_view ToString(ScopeKind kind);

/// One write in flight to a store, as it was when it was sent (SCOPE-14).
class PendingWrite {
 public:
  PendingWrite(std::string store, Lineage lineage, std::string site);

  const std::string& store() const { return store_; }
  /// The scope's lineage when the write was sent: no position in it can be beyond the write's own (LIN-28, LIN-29).
  const Lineage& lineage() const { return lineage_; }
  /// Where it was begun.
  const std::string& site() const { return site_; }
  /// The thread that sent it.
  std::thread::id thread() const { return thread_; }

 private:
  friend class LineageScope;

  std::string store_;
  Lineage lineage_;
  std::string site_;
  std::thread::id thread_;
  bool unknown_ = false;  // whether its outcome stays unknown: guarded by the scope's lock
};

using PendingPtr = std::shared_ptr<PendingWrite>;

/// What one request, message or task depends on. Joins are atomic: its threads share it (SCOPE-2).
///
/// It closes when the `Scope` that opened it ends, or by `Stop`; what is appended later is dropped and counted.
class LineageScope : public std::enable_shared_from_this<LineageScope> {
 public:
  explicit LineageScope(Lineage lineage = {}, ScopeKind kind = ScopeKind::kRoot, std::optional<Delivery> delivery = {},
                        Site site = Site());
  LineageScope(const LineageScope&) = delete;
  LineageScope& operator=(const LineageScope&) = delete;
  ~LineageScope();

  // Reading it

  ScopeKind kind() const;
  /// Where it was opened.
  const std::string& site() const;
  const std::optional<Delivery>& delivery() const;
  /// The lineage as it is now, marked as a copy that leaves is: stores with a write in flight or of unknown outcome are
  /// incomplete (SCOPE-16, SCOPE-20), and it is so anywhere while a response stream brings messages before it
  /// (PROP-28), or where this scope is current and has ended (SCOPE-34). No finding, and never an error: nothing leaves
  /// by it.
  Lineage lineage() const;
  /// The same without marks of writes in flight: for barriers and waits, which say themselves what is in doubt
  /// (BAR-56).
  Lineage Known() const;
  /// Whether it has ended.
  bool closed() const;
  /// Why its lineage is not complete, as far as this process knows.
  std::vector<Gap> gaps() const;
  /// The lineage as it may rest beside the value that this write of its own writes, which is not marked.
  Lineage MarkedBut(const PendingPtr& own) const;
  /// The lineage as it may leave with a request, message or response: marked, and `on_pending` applied.
  ///
  /// Fails (kPendingWrite) only with `on_pending=raise`, where a write of this very thread has no position yet.
  Result<Lineage> Outgoing(Site site = Site()) const;
  /// What this scope has beyond what it was opened with: what a response carries back (PROP-13).
  Lineage Additions() const;
  /// The stores whose part of the lineage changed here, the oldest change first (WIRE-33).
  std::vector<std::string> changed() const;
  /// When the request itself gives up; tightens every barrier in it (BAR-28).
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
  void set_deadline(std::chrono::steady_clock::time_point deadline);
  /// What opened it, for findings: a route or a method, never a path. The site where nothing was said.
  std::string opened_by() const;
  void set_opened_by(std::string what);
  /// The store of the message that opened it, where a shim consumed it; else empty (REC-7).
  const std::string& queue() const;
  /// For shims of queues, before anybody else has the scope.
  void set_queue(std::string store);

  // Changing it

  /// Adds writes to the lineage (paper table 2). In a closed scope they are dropped and counted (SCOPE-4).
  void Append(const WriteId& id, Site site = Site());
  void Append(const std::vector<WriteId>& ids, Site site = Site());
  /// Makes this scope depend on a lineage (paper table 2): an earlier request, a text that was carried by hand.
  void Transfer(const Lineage& lineage, Site site = Site());
  /// The same with what a value depends on that was read through a shim.
  void TransferRead(const Lineage& lineage, Site site = Site());
  /// Joins what came in by a response: without what was removed from this scope before (LIN-24).
  void Merge(const Lineage& lineage, Site site = Site());
  /// Joins what the request or message itself brought: it is not sent back with the response.
  void Receive(const Lineage& lineage);
  /// Takes out what this write covers (LIN-21). It holds for the scope: a response does not bring it back.
  Removal Remove(const WriteId& id);
  /// Takes out what this lineage covers.
  Removal Remove(const Lineage& lineage);
  /// Takes out a whole store with its mark of incompleteness (LIN-22).
  Removal RemoveStore(const std::string& store);
  /// The application vouches that nothing is missing: every mark goes (LIN-23), that of a
  /// response stream until its next message.
  void Vouch();
  /// Records that something which belonged here is missing, in these stores or anywhere. No site: nobody knows it.
  void MarkIncomplete(std::string_view reason, const std::vector<std::string>& stores = {}, std::string detail = {},
                      std::optional<Site> site = Site());
  /// The response's header has left: what is written from now on comes late, and is counted (PROP-16).
  void NoteSent();
  bool sent() const;

  // Writes in flight

  /// Notes a write that may be sent now; until it ends, copies that leave are marked incomplete (SCOPE-14).
  PendingPtr Begin(const std::string& store, Site site = Site());
  /// The write has this identifier: what cannot be true is dropped (LIN-28), then it is appended, in one step.
  void Written(const PendingPtr& write, const WriteId& id, Site site = Site());
  /// The write is known not to have happened, or its identifiers were appended.
  void End(const PendingPtr& write);
  /// Nobody can say whether the write happened: it stays pending for the life of the scope (SCOPE-17).
  void OutcomeUnknown(const PendingPtr& write);
  /// The writes that are in flight now, those of unknown outcome included.
  std::vector<PendingPtr> pending() const;

  // Ending it

  /// Ends the scope; a detached one lives on until the work that carries it has ended (SCOPE-3, SCOPE-12).
  void Stop();

  /// What the library itself asks of it, and neither shims nor applications.
  class Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  const std::unique_ptr<Impl> impl_;
};

/// A scope that is current from here on, until this object ends: then it closes, and what was current before is again.
///
/// Like a lock it belongs to one thread and one block; moving it does not move the block. Where another thread ends it,
/// it is current no longer here, either.
class [[nodiscard]] Scope {
 public:
  /// A new scope, empty or starting from a lineage.
  explicit Scope(Lineage lineage = {}, Site site = Site());
  /// Opens this one: what middlewares and consumers do.
  explicit Scope(ScopePtr scope);
  Scope(Scope&& other) noexcept;
  Scope& operator=(Scope&&) = delete;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();

  LineageScope* operator->() const { return scope_.get(); }
  LineageScope& operator*() const { return *scope_; }
  const ScopePtr& shared() const { return scope_; }
  /// The scope's lineage, marked for its writes in flight (SCOPE-20).
  Lineage lineage() const { return scope_->lineage(); }

  /// Puts what this request's scope added into the response's headers, before they leave (PROP-13).
  ///
  /// `is_public`: shared caches may keep the response; by default its headers say it (PROP-16, PROP-34).
  void InjectResponse(Carrier& headers, std::optional<bool> is_public = std::nullopt);
  void InjectResponse(Carrier&& headers, std::optional<bool> is_public = std::nullopt) {
    InjectResponse(headers, is_public);
  }
  /// The same where the request's method and the response's status are known, which say more surely what shared caches
  /// keep, and who has answered (PROP-31, PROP-39).
  void InjectResponse(Carrier& headers, std::string_view method, int status);
  void InjectResponse(Carrier&& headers, std::string_view method, int status) {
    InjectResponse(headers, method, status);
  }

 private:
  ScopePtr scope_;
  std::uint64_t entered_ = 0;
};

/// Makes a scope the current one of this thread until this object ends, without closing it.
class [[nodiscard]] Activation {
 public:
  explicit Activation(ScopePtr scope);
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;
  ~Activation();

 private:
  std::uint64_t entered_;
};

/// The scope of the running request, message or task; null outside any.
ScopePtr CurrentScope();

/// A copy of the current scope, for work that outlives the request (SCOPE-7).
Scope DetachedScope(Site site = Site());

/// Opens a new, empty scope and makes it the current one of this thread (paper table 2); it never clears a shared one.
ScopePtr Root(Site site = Site());

/// Ends the current scope (paper table 2); what was current before `Root` is current again.
void Stop();

/// Adds writes to the current scope; outside any scope they are counted as orphans, with the site (SCOPE-9).
void Append(const WriteId& id, Site site = Site());
void Append(const std::vector<WriteId>& ids, Site site = Site());

/// Takes something out of the current scope's lineage; see LineageScope.
Removal Remove(const WriteId& id);
Removal Remove(const Lineage& lineage);
Removal RemoveStore(const std::string& store);

/// Makes the current scope depend on a lineage (paper table 2).
void Transfer(const Lineage& lineage, Site site = Site());

/// The current scope's lineage as text, as it may leave now (paper table 2, SCOPE-20).
///
/// Fails outside any scope (kConfiguration): that is no empty lineage (SCOPE-22); and as `Outgoing` does.
Result<std::string> Serialize(Site site = Site());

/// Reads a lineage text; kMalformedLineage where it is none (paper table 2).
Result<Lineage> Deserialize(std::string_view text);

/// Counts a write that no scope records (SCOPE-9).
void CountOrphan(const std::string& store, const Site& site);

}  // namespace antipode

#endif  // ANTIPODE_SCOPE_H_
