#include "antipode/scope.h"

#include <algorithm>
#include <utility>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "base/mode_changes.h"
#include "base/observers.h"
#include "model/quote.h"
#include "scope/context.h"
#include "scope/hooks.h"
#include "scope/scope_impl.h"

namespace antipode {
namespace {

constexpr std::size_t kMostGaps = 100;

std::string FirstStore(const Lineage& lineage) {
  const std::vector<std::string> stores = lineage.stores();
  return stores.empty() ? std::string() : stores.front();
}

Gap WasOffGap() {
  return {"mode", "", "the mode was off while it was open: what it wrote and heard then is not recorded"};
}

}  // namespace

std::string_view ToString(ScopeKind kind) {
  switch (kind) {
    case ScopeKind::kRoot:
      return "root";
    case ScopeKind::kRequest:
      return "request";
    case ScopeKind::kMessage:
      return "message";
    case ScopeKind::kDetached:
      return "detached";
  }
  return "root";
}

LineageScope::Impl::Impl(LineageScope& owner, Lineage lineage, ScopeKind kind, std::optional<Delivery> delivery,
                         Site site)
    : owner_(owner),
      kind_(kind),
      delivery_(std::move(delivery)),
      site_(site.ToString()),
      lineage_(lineage.WithoutExtensionsOfBranches()),
      inbound_lineage_(lineage_),
      times_off_ended_(TimesOffEnded()) {
  if (!lineage_.empty()) context::KnowLineage();
  Events().ScopeOpened(kind_);
}

// Reading it

Lineage LineageScope::Impl::Known() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Now();
}

Lineage LineageScope::Impl::Now() const {
  return streams_.empty() && !WasOff() ? lineage_ : lineage_.MarkedIncomplete();
}

bool LineageScope::Impl::WasOff() const { return !closed_ && times_off_ended_ != TimesOffEnded(); }

bool LineageScope::Impl::closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

std::vector<Gap> LineageScope::Impl::gaps() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Gap> all = gaps_;
  for (const StreamPtr& stream : streams_) all.push_back(*stream);
  if (WasOff()) all.push_back(WasOffGap());
  return all;
}

Lineage LineageScope::Impl::Additions() const {
  const Lineage marked = Marked(nullptr);
  const std::lock_guard<std::mutex> lock(mutex_);
  return marked.IsSame(inbound_lineage_) ? Lineage() : marked.AddedTo(inbound_lineage_);
}

std::vector<std::string> LineageScope::Impl::changed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return changed_;
}

// Under the lock. A request writes to few stores, most often to the one that it wrote to last.
void LineageScope::Impl::NoteChange(const std::string& store) {
  if (!changed_.empty() && changed_.back() == store) return;
  changed_.erase(std::remove(changed_.begin(), changed_.end(), store), changed_.end());
  changed_.push_back(store);
}

std::optional<std::chrono::steady_clock::time_point> LineageScope::Impl::deadline() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return deadline_;
}

void LineageScope::Impl::set_deadline(std::chrono::steady_clock::time_point deadline) {
  const std::lock_guard<std::mutex> lock(mutex_);
  deadline_ = deadline;
}

std::string LineageScope::Impl::opened_by() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return opened_by_.empty() ? site_ : opened_by_;
}

void LineageScope::Impl::set_opened_by(std::string what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  opened_by_ = std::move(what);
}

bool LineageScope::Impl::sent() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sent_;
}

void LineageScope::Impl::NoteSent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  sent_ = true;
}

std::shared_ptr<Inbound> LineageScope::Impl::inbound() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return inbound_;
}

void LineageScope::Impl::set_inbound(std::shared_ptr<Inbound> inbound) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inbound_ = std::move(inbound);
}

bool LineageScope::Impl::Brought() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return (kind_ == ScopeKind::kRequest || kind_ == ScopeKind::kMessage) && !inbound_lineage_.empty();
}

bool LineageScope::Impl::PassedAt(const std::string& site) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(passed_at_.begin(), passed_at_.end(), site) != passed_at_.end()) return false;
  passed_at_.push_back(site);
  return true;
}

// Changing it

void LineageScope::Impl::Append(const WriteId& id, Site site) { Append(std::vector<WriteId>{id}, site); }

void LineageScope::Impl::Append(const std::vector<WriteId>& ids, Site site) {
  if (ids.empty()) return;
  context::KnowLineage();
  bool closed = false;
  bool late = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed = closed_;
    late = sent_;
    if (closed) {
      lineage_ = lineage_.MarkedIncomplete(Lineage(ids).stores());
    } else {
      lineage_ = lineage_.Including(ids);
      for (const WriteId& id : ids) NoteChange(id.store());
    }
  }
  if (closed) {
    TooLate(ids.front().store(), site);
  } else if (late) {
    AfterHeader(ids.front().store(), site);
  }
}

void LineageScope::Impl::Transfer(const Lineage& lineage, Site site) {
  Join(lineage, false, site);
  Events().LineageArrived(owner_, lineage);
}

void LineageScope::Impl::TransferRead(const Lineage& lineage, Site site) { Join(lineage, false, site); }

void LineageScope::Impl::Merge(const Lineage& lineage, Site site) { Join(lineage, true, site); }

void LineageScope::Impl::Receive(const Lineage& lineage) {
  if (lineage.empty()) return;
  bool closed = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed = closed_;
    if (closed) {
      lineage_ = lineage_.MarkedIncomplete(lineage.IsComplete() ? lineage.stores() : std::vector<std::string>());
    } else {
      const Lineage brought = lineage.WithoutExtensionsOfBranches();
      lineage_ |= Filtered(brought);
      inbound_lineage_ |= brought;
    }
  }
  if (closed) TooLate(FirstStore(lineage), Site());
}

void LineageScope::Impl::Join(const Lineage& lineage, bool filtered, const Site& site) {
  if (lineage.empty()) return;
  context::KnowLineage();
  bool closed = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed = closed_;
    Lineage brought = lineage.WithoutExtensionsOfBranches();
    if (filtered) brought = Filtered(std::move(brought));
    if (closed) {
      lineage_ = lineage_.MarkedIncomplete(lineage.IsComplete() ? lineage.stores() : std::vector<std::string>());
    } else {
      for (const std::string& store : brought.AddedTo(lineage_).stores()) NoteChange(store);
      lineage_ |= brought;
    }
  }
  if (closed) TooLate(FirstStore(lineage), site);
}

Lineage LineageScope::Impl::Filtered(Lineage lineage) const {
  for (const std::string& store : removed_stores_) lineage = lineage.WithoutStore(store);
  return lineage.Without(removed_);
}

Removal LineageScope::Impl::TakeOut(Lineage after, const Lineage& named) {
  Lineage taken = lineage_.Beyond(after);
  removed_ = removed_ | taken | named.Vouched();
  lineage_ = std::move(after);
  Removal removed{std::move(taken), {}};
  for (const WriteId& id : named.ids()) {
    if (lineage_.Covers(id)) removed.still_covered.push_back(id);
  }
  return removed;
}

Removal LineageScope::Impl::Remove(const WriteId& id) { return Remove(Lineage(id)); }

Removal LineageScope::Impl::Remove(const Lineage& lineage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return TakeOut(lineage_.Without(lineage), lineage);
}

Removal LineageScope::Impl::RemoveStore(const std::string& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  removed_stores_.push_back(store);
  return TakeOut(lineage_.WithoutStore(store), {});
}

void LineageScope::Impl::Vouch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  lineage_ = lineage_.Vouched();
  streams_.clear();
  times_off_ended_ = TimesOffEnded();
}

void LineageScope::Impl::MarkIncomplete(std::string_view reason, const std::vector<std::string>& stores,
                                        std::string detail, std::optional<Site> site) {
  context::KnowLineage();
  const std::vector<std::string> named = stores.empty() ? std::vector<std::string>{std::string()} : stores;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lineage_ = lineage_.MarkedIncomplete(stores);
    for (const std::string& store : named) AddGap({std::string(reason), store, detail});
  }
  const std::string where = site ? site->ToString() : std::string();
  for (const std::string& store : named) Events().LineageIncomplete({reason, store, &owner_, where});
}

void LineageScope::Impl::NoteGap(std::string reason, std::string store, std::string detail) {
  const std::lock_guard<std::mutex> lock(mutex_);
  AddGap({std::move(reason), std::move(store), std::move(detail)});
}

void LineageScope::Impl::AddGap(Gap gap) {
  if (gaps_.size() < kMostGaps) gaps_.push_back(std::move(gap));
}

std::shared_ptr<const void> LineageScope::Impl::Proof() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_marked = !streams_.empty() || !pending_.empty() || closed_ || WasOff();
  return proof_ != nullptr && !is_marked && proved_.IsSame(lineage_) ? proof_ : nullptr;
}

void LineageScope::Impl::KeepProof(const Lineage& lineage, std::shared_ptr<const void> proof) {
  const std::lock_guard<std::mutex> lock(mutex_);
  proved_ = lineage;
  proof_.swap(proof);  // what was kept before is let go after the lock
}

// Ending it

void LineageScope::Impl::Stop() {
  bool was_off = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    was_off = holds_ == 0 && Close();
  }
  if (was_off) Events().LineageIncomplete({"mode", {}, &owner_, {}, false});
}

bool LineageScope::Impl::Close() {
  const bool was_off = WasOff();
  if (was_off) {
    lineage_ = lineage_.MarkedIncomplete();
    AddGap(WasOffGap());
  }
  closed_ = true;
  return was_off;
}

void LineageScope::Impl::Hold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++holds_;
}

void LineageScope::Impl::Release() {
  bool was_off = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --holds_;
    was_off = stopped_ && holds_ == 0 && Close();
  }
  if (was_off) Events().LineageIncomplete({"mode", {}, &owner_, {}, false});
}

void LineageScope::Impl::AfterHeader(const std::string& store, const Site& site) {
  Events().WriteLate(store, site.ToString());
}

void LineageScope::Impl::TooLate(const std::string& store, const Site& site) const {
  const std::string where = site.ToString();
  Events().WriteLost("closed", store, where);
  logs::Warn("AP402", "closed-scope " + where,
             "dropped a write to " + (store.empty() ? "a store" : Shown(store)) + ": its scope (" + site_ +
                 ") has ended. For work that outlives the request use antipode::DetachedScope(). site=" + where);
}

// The handle

LineageScope::LineageScope(Lineage lineage, ScopeKind kind, std::optional<Delivery> delivery, Site site)
    : impl_(std::make_unique<Impl>(*this, std::move(lineage), kind, std::move(delivery), site)) {}

LineageScope::~LineageScope() = default;

ScopeKind LineageScope::kind() const { return impl_->kind(); }

const std::string& LineageScope::site() const { return impl_->site(); }

const std::optional<Delivery>& LineageScope::delivery() const { return impl_->delivery(); }

Lineage LineageScope::lineage() const { return impl_->lineage(); }

Lineage LineageScope::Known() const { return impl_->Known(); }

bool LineageScope::closed() const { return impl_->closed(); }

std::vector<Gap> LineageScope::gaps() const { return impl_->gaps(); }

Lineage LineageScope::MarkedBut(const PendingPtr& own) const { return impl_->MarkedBut(own); }

Result<Lineage> LineageScope::Outgoing(Site site) const { return impl_->Outgoing(site); }

Lineage LineageScope::Additions() const { return impl_->Additions(); }

std::vector<std::string> LineageScope::changed() const { return impl_->changed(); }

std::optional<std::chrono::steady_clock::time_point> LineageScope::deadline() const { return impl_->deadline(); }

void LineageScope::set_deadline(std::chrono::steady_clock::time_point deadline) { impl_->set_deadline(deadline); }

std::string LineageScope::opened_by() const { return impl_->opened_by(); }

void LineageScope::set_opened_by(std::string what) { impl_->set_opened_by(std::move(what)); }

const std::string& LineageScope::queue() const { return impl_->queue(); }

void LineageScope::set_queue(std::string store) { impl_->set_queue(std::move(store)); }

void LineageScope::Append(const WriteId& id, Site site) { impl_->Append(id, site); }

void LineageScope::Append(const std::vector<WriteId>& ids, Site site) { impl_->Append(ids, site); }

void LineageScope::Transfer(const Lineage& lineage, Site site) { impl_->Transfer(lineage, site); }

void LineageScope::TransferRead(const Lineage& lineage, Site site) { impl_->TransferRead(lineage, site); }

void LineageScope::Merge(const Lineage& lineage, Site site) { impl_->Merge(lineage, site); }

void LineageScope::Receive(const Lineage& lineage) { impl_->Receive(lineage); }

Removal LineageScope::Remove(const WriteId& id) { return impl_->Remove(id); }

Removal LineageScope::Remove(const Lineage& lineage) { return impl_->Remove(lineage); }

Removal LineageScope::RemoveStore(const std::string& store) { return impl_->RemoveStore(store); }

void LineageScope::Vouch() { impl_->Vouch(); }

void LineageScope::MarkIncomplete(std::string_view reason, const std::vector<std::string>& stores, std::string detail,
                                  std::optional<Site> site) {
  impl_->MarkIncomplete(reason, stores, std::move(detail), site);
}

void LineageScope::NoteSent() { impl_->NoteSent(); }

bool LineageScope::sent() const { return impl_->sent(); }

PendingPtr LineageScope::Begin(const std::string& store, Site site) { return impl_->Begin(store, site); }

void LineageScope::Written(const PendingPtr& write, const WriteId& id, Site site) { impl_->Written(write, id, site); }

void LineageScope::End(const PendingPtr& write) { impl_->End(write); }

void LineageScope::OutcomeUnknown(const PendingPtr& write) { impl_->OutcomeUnknown(write); }

std::vector<PendingPtr> LineageScope::pending() const { return impl_->pending(); }

void LineageScope::Stop() { impl_->Stop(); }

}  // namespace antipode
