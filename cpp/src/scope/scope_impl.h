// A scope from within: what it holds under its lock. What it says stands at `LineageScope`.
#ifndef ANTIPODE_SRC_SCOPE_SCOPE_IMPL_H_
#define ANTIPODE_SRC_SCOPE_SCOPE_IMPL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/gap.h"
#include "antipode/scope.h"

namespace antipode {

class Inbound;

namespace history {
struct Strand;
}  // namespace history

// A response stream with a message in hand, as a gap of its scope; told from others by its address.
using StreamPtr = std::shared_ptr<const Gap>;

class LineageScope::Impl {
 public:
  Impl(LineageScope& owner, Lineage lineage, ScopeKind kind, std::optional<Delivery> delivery, Site site);

  ScopeKind kind() const { return kind_; }
  const std::string& site() const { return site_; }
  const std::optional<Delivery>& delivery() const { return delivery_; }
  Lineage lineage() const { return MarkedBut(nullptr); }
  Lineage Known() const;
  bool closed() const;
  std::vector<Gap> gaps() const;
  Lineage MarkedBut(const PendingPtr& own) const;
  Result<Lineage> Outgoing(Site site = Site()) const;
  Lineage Additions() const;
  std::vector<std::string> changed() const;
  // For a copy of a scope, before anybody else has it.
  void set_changed(std::vector<std::string> stores) { changed_ = std::move(stores); }
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
  void set_deadline(std::chrono::steady_clock::time_point deadline);
  std::string opened_by() const;
  void set_opened_by(std::string what);
  const std::string& queue() const { return queue_; }
  void set_queue(std::string store) { queue_ = std::move(store); }
  void Append(const WriteId& id, Site site = Site());
  void Append(const std::vector<WriteId>& ids, Site site = Site());
  void Transfer(const Lineage& lineage, Site site = Site());
  void TransferRead(const Lineage& lineage, Site site = Site());
  void Merge(const Lineage& lineage, Site site = Site());
  void Receive(const Lineage& lineage);
  Removal Remove(const WriteId& id);
  Removal Remove(const Lineage& lineage);
  Removal RemoveStore(const std::string& store);
  void Vouch();
  void MarkIncomplete(std::string_view reason, const std::vector<std::string>& stores = {}, std::string detail = {},
                      std::optional<Site> site = Site());
  // Keeps a reason for the barrier's gaps without marking the lineage (an untrusted one was dropped).
  void NoteGap(std::string reason, std::string store, std::string detail);
  void NoteSent();
  bool sent() const;
  // Whether the request or message itself brought a lineage.
  bool Brought() const;
  // Notes that the lineage left at this site; whether that is the first time.
  bool PassedAt(const std::string& site);
  // What a recorded history keeps of it, under the recorder's lock.
  std::shared_ptr<history::Strand>& strand() { return strand_; }
  // A message of this stream is in hand, whose lineage comes at the stream's end: until then the scope is incomplete
  // anywhere (PROP-28). Said of every message: the application may have vouched for those before.
  void Streaming(const StreamPtr& stream);
  // The stream's end came, and what it brought is joined; or is known to be missing, and marked.
  void Streamed(const StreamPtr& stream);
  // Whether there are messages in hand whose lineage has not come yet.
  bool streaming() const;
  PendingPtr Begin(const std::string& store, Site site = Site());
  void Written(const PendingPtr& write, const WriteId& id, Site site = Site());
  void End(const PendingPtr& write);
  void OutcomeUnknown(const PendingPtr& write);
  std::vector<PendingPtr> pending() const;
  // The stores of the writes in flight, and whether the outcome of each is unknown: what the scope itself does not
  // know (BAR-56).
  std::vector<std::pair<std::string, bool>> InDoubt() const;
  // The pending writes of the calling thread itself: what leaves now leaves before their commit (SCOPE-18).
  std::vector<PendingPtr> PublishedBeforeCommit() const;
  // The writes in flight of other threads: no violation where a lineage leaves (SCOPE-18).
  std::vector<PendingPtr> WrittenElsewhere() const;
  // What was kept for the lineage as it is now; null where it has changed since, a write is in flight, or nothing was
  // kept.
  std::shared_ptr<const void> Proof() const;
  // Keeps this for as long as the lineage is that one.
  void KeepProof(const Lineage& lineage, std::shared_ptr<const void> proof);
  void Stop();
  // Keeps a detached scope open for work that carries it.
  void Hold();
  // Work that carried the scope has ended; the last one closes a scope that was stopped meanwhile.
  void Release();
  // The block that opened it has ended, and another thread ended it: where it was opened it is current no longer.
  void NoteLeft() { left_.store(true); }
  bool is_left() const { return left_.load(std::memory_order_relaxed); }
  // The request that came in, where a middleware opened this scope for one.
  std::shared_ptr<Inbound> inbound() const;
  void set_inbound(std::shared_ptr<Inbound> inbound);

 private:
  void Join(const Lineage& lineage, bool filtered, const Site& site);
  Lineage Marked(const PendingPtr& own) const;  // as it is marked at its own end, too
  Lineage Filtered(Lineage lineage) const;
  Removal TakeOut(Lineage after, const Lineage& named);
  void TooLate(const std::string& store, const Site& site) const;
  static void AfterHeader(const std::string& store, const Site& site);
  bool DropImplausible(const PendingWrite& write, const WriteId& id, std::string& detail);
  void AddGap(Gap gap);
  Lineage Now() const;  // with the marks of open streams and of a mode that was off; under the lock
  bool WasOff() const;  // whether the mode has left `off` since it was opened (SCOPE-26); under the lock
  bool Close();         // whether it was off; under the lock
  void NoteChange(const std::string& store);

  LineageScope& owner_;
  const ScopeKind kind_;
  const std::optional<Delivery> delivery_;
  const std::string site_;
  mutable std::mutex mutex_;
  Lineage lineage_;
  Lineage inbound_lineage_;
  std::vector<std::string> changed_;
  Lineage removed_;
  std::vector<std::string> removed_stores_;
  std::vector<PendingPtr> pending_;
  std::vector<StreamPtr> streams_;
  std::vector<Gap> gaps_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::string opened_by_;
  std::string queue_;
  std::vector<std::string> passed_at_;
  std::shared_ptr<Inbound> inbound_;
  Lineage proved_;
  std::shared_ptr<const void> proof_;
  int holds_ = 0;
  bool sent_ = false;
  bool stopped_ = false;
  bool closed_ = false;
  std::atomic<bool> left_{false};
  std::shared_ptr<history::Strand> strand_;
  std::uint64_t times_off_ended_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_SCOPE_SCOPE_IMPL_H_
