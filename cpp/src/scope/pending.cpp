// Writes in flight of a scope, and what happens where a lineage leaves meanwhile (SCOPE-14 to SCOPE-19).
#include <algorithm>
#include <set>
#include <utility>

#include "antipode/logs.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "base/observers.h"
#include "scope/context.h"
#include "scope/scope_impl.h"

namespace antipode {
namespace {

// A lineage leaves before the commit of this thread's own writes: the commonest form of the bug (SCOPE-18).
Result<void> ApplyOnPending(const std::vector<PendingPtr>& uncommitted, const Site& site) {
  std::set<std::string> stores;
  for (const PendingPtr& write : uncommitted) stores.insert(write->store());
  std::string names;
  for (const std::string& store : stores) names.append(names.empty() ? "" : ", ").append(store);
  const std::string where = site.ToString();
  Events().LineageLeftEarly(where, uncommitted);
  const auto settings = CurrentSettings();
  if (settings->on_pending == OnPending::kRaise) {
    return Error{ErrorCode::kPendingWrite, "AP115",
                 "a lineage leaves before the commit of " + names +
                     ": readers cannot wait for it. Publish after commit. (site: " + where + ")"};
  }
  if (settings->on_pending == OnPending::kWarn || settings->mode == Mode::kDryRun) {
    logs::Warn("AP115", "pending " + where,
               "sent a lineage before the commit of " + names +
                   ": readers cannot wait for it. Publish after commit. site=" + where);
  }
  return {};
}

}  // namespace

PendingWrite::PendingWrite(std::string store, Lineage lineage, std::string site)
    : store_(std::move(store)),
      lineage_(std::move(lineage)),
      site_(std::move(site)),
      thread_(std::this_thread::get_id()) {}

Lineage LineageScope::Impl::MarkedBut(const PendingPtr& own) const {
  Lineage marked = Marked(own);
  return closed() && CurrentScope().get() == &owner_ ? marked.MarkedIncomplete() : marked;
}

Lineage LineageScope::Impl::Marked(const PendingPtr& own) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> stores;
  stores.reserve(pending_.size());
  for (const PendingPtr& write : pending_) {
    if (write != own) stores.push_back(write->store());
  }
  return stores.empty() ? Now() : Now().MarkedIncomplete(stores);
}

Result<Lineage> LineageScope::Impl::Outgoing(Site site) const {
  if (CurrentSettings()->mode == Mode::kDryRun) {
    for (const PendingPtr& write : WrittenElsewhere()) Events().WriteConcurrent(site.ToString(), *write);
  }
  const std::vector<PendingPtr> uncommitted = PublishedBeforeCommit();
  if (!uncommitted.empty()) {
    if (auto allowed = ApplyOnPending(uncommitted, site); !allowed) return allowed.error();
  }
  return lineage();
}

PendingPtr LineageScope::Impl::Begin(const std::string& store, Site site) {
  const auto settings = CurrentSettings();
  const bool is_dry_run = settings->mode == Mode::kDryRun;
  const bool notes = settings->on_pending != OnPending::kMark || is_dry_run;
  if (is_dry_run) Events().WriteBegun(store);
  context::KnowLineage();
  const std::lock_guard<std::mutex> lock(mutex_);
  auto write = std::make_shared<PendingWrite>(store, lineage_, notes ? site.ToString() : std::string());
  pending_.push_back(write);
  return write;
}

void LineageScope::Impl::End(const PendingPtr& write) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_.erase(std::remove(pending_.begin(), pending_.end(), write), pending_.end());
}

void LineageScope::Impl::OutcomeUnknown(const PendingPtr& write) {
  const std::lock_guard<std::mutex> lock(mutex_);
  write->unknown_ = true;
}

std::vector<PendingPtr> LineageScope::Impl::pending() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pending_;
}

std::vector<std::pair<std::string, bool>> LineageScope::Impl::InDoubt() const {
  std::vector<std::pair<std::string, bool>> found;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const PendingPtr& write : pending_) found.emplace_back(write->store(), write->unknown_);
  return found;
}

std::vector<PendingPtr> LineageScope::Impl::PublishedBeforeCommit() const {
  std::vector<PendingPtr> found;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const PendingPtr& write : pending_) {
    if (write->thread() == std::this_thread::get_id() && !write->unknown_) found.push_back(write);
  }
  return found;
}

std::vector<PendingPtr> LineageScope::Impl::WrittenElsewhere() const {
  std::vector<PendingPtr> found;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const PendingPtr& write : pending_) {
    if (write->thread() != std::this_thread::get_id() && !write->unknown_) found.push_back(write);
  }
  return found;
}

void LineageScope::Impl::Written(const PendingPtr& write, const WriteId& id, Site site) {
  std::string implausible;
  bool closed = false;
  bool late = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed = closed_;
    if (closed) {
      lineage_ = lineage_.MarkedIncomplete({id.store()});
    } else {
      if (DropImplausible(*write, id, implausible)) {
        lineage_ = lineage_.MarkedIncomplete({id.store()});
        AddGap({"implausible", id.store(), implausible});
      }
      lineage_ = lineage_.Including(id);
      NoteChange(id.store());
    }
    pending_.erase(std::remove(pending_.begin(), pending_.end(), write), pending_.end());
    late = sent_;
  }
  if (!implausible.empty()) {
    Events().LineageDropped("implausible", "write");
    Events().LineageIncomplete({"implausible", id.store(), &owner_, site.ToString()});
    logs::Warn("AP407", "implausible " + id.store(),
               "dropped an impossible entry of " + id.store() + ": " + implausible +
                   ". It is forged, or the store was rolled back.");
  }
  if (closed) {
    TooLate(id.store(), site);
  } else if (late) {
    AfterHeader(id.store(), site);
  }
}

// A lineage as it was when a write was sent cannot hold a greater position of that epoch than the write received
// (LIN-28).
bool LineageScope::Impl::DropImplausible(const PendingWrite& write, const WriteId& id, std::string& detail) {
  const Ordered* received = id.ordered();
  if (received == nullptr) return false;
  const auto only = write.lineage().OnlyPosition(id.store(), received->epoch);
  if (only && *only <= received->counter) return false;
  for (const WriteId& known : write.lineage().OfStore(id.store())) {
    if (!known.is_position() || known.ordered()->epoch != received->epoch) continue;
    if (known.ordered()->counter <= received->counter) continue;
    detail = "position " + ToString(known.version()) + " came in before a write that got " + ToString(id.version());
    lineage_ = lineage_.Without(known);
    return true;
  }
  return false;
}

}  // namespace antipode
