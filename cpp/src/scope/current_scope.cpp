// The calling thread's scope, and the paper's verbs on it (SCOPE-21).
#include <atomic>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "base/observers.h"
#include "model/quote.h"
#include "scope/context.h"
#include "scope/hooks.h"
#include "scope/scope_impl.h"

namespace antipode {
namespace {

std::atomic<bool> knows_lineages{false};

// The write that began outside any scope before anything else was known, if that is all there is.
std::atomic<const void*> first_outside{nullptr};

std::uint64_t EnterScope(ScopePtr scope, bool is_block = false) {
  Context next = context::Current();
  next.scope = std::move(scope);
  return context::Enter(std::move(next), is_block);
}

// What `Root` opened on this thread, each with what `Stop` is to leave.
std::vector<std::pair<ScopePtr, std::uint64_t>>& Roots() {
  thread_local std::vector<std::pair<ScopePtr, std::uint64_t>> roots;
  return roots;
}

}  // namespace

void context::KnowLineage() {
  if (!knows_lineages.load(std::memory_order_relaxed)) knows_lineages.store(true, std::memory_order_relaxed);
}

void context::BeginOutside(const void* write) {
  if (knows_lineages.load(std::memory_order_relaxed)) return;
  const void* first = nullptr;
  if (!first_outside.compare_exchange_strong(first, write) && first != write) KnowLineage();
}

bool context::KnowsLineages(const void* but) {
  if (knows_lineages.load(std::memory_order_relaxed)) return true;
  const void* const first = first_outside.load();
  return first != nullptr && first != but;
}

void context::ForgetLineages() {
  knows_lineages.store(false, std::memory_order_relaxed);
  first_outside.store(nullptr);
}

Scope::Scope(Lineage lineage, Site site)
    : Scope(std::make_shared<LineageScope>(lineage, ScopeKind::kRoot, std::nullopt, site)) {
  Events().LineageArrived(*scope_, lineage);
}

Scope::Scope(ScopePtr scope) : scope_(std::move(scope)), entered_(EnterScope(scope_, scope_ != nullptr)) {}

Scope::Scope(Scope&& other) noexcept : scope_(std::move(other.scope_)), entered_(std::exchange(other.entered_, 0)) {}

Scope::~Scope() {
  if (scope_ == nullptr) return;
  scope_->Stop();
  if (!context::Leave(entered_)) scope_->impl().NoteLeft();
}

Activation::Activation(ScopePtr scope) : entered_(EnterScope(std::move(scope))) {}

Activation::~Activation() { context::Leave(entered_); }

ScopePtr CurrentScope() {
  const Context& own = context::Current();  // asked first: it leaves what another thread has ended
  if (std::optional<ScopePtr> followed = hooks::Current()) return *std::move(followed);
  return own.scope;
}

Scope DetachedScope(Site site) {
  const ScopePtr outer = CurrentScope();
  Lineage lineage = outer == nullptr ? Lineage() : outer->lineage();
  auto scope = std::make_shared<LineageScope>(std::move(lineage), ScopeKind::kDetached, std::nullopt, site);
  if (outer != nullptr) {
    scope->impl().set_changed(outer->changed());
    Events().ScopesJoined(*outer, *scope);
  }
  return Scope(std::move(scope));
}

ScopePtr Root(Site site) {
  auto scope = std::make_shared<LineageScope>(Lineage(), ScopeKind::kRoot, std::nullopt, site);
  Roots().emplace_back(scope, EnterScope(scope));
  return scope;
}

void Stop() {
  const ScopePtr scope = CurrentScope();
  if (scope == nullptr) return;
  scope->Stop();
  auto& roots = Roots();
  if (!roots.empty() && roots.back().first == scope) {
    const std::uint64_t entered = roots.back().second;
    roots.pop_back();
    context::Leave(entered);
  }
}

void Append(const WriteId& id, Site site) { Append(std::vector<WriteId>{id}, site); }

void Append(const std::vector<WriteId>& ids, Site site) {
  if (const ScopePtr scope = CurrentScope()) {
    scope->Append(ids, site);
  } else if (!ids.empty()) {
    CountOrphan(ids.front().store(), site);
  }
}

void CountOrphan(const std::string& store, const Site& site) {
  context::KnowLineage();
  const std::string where = site.ToString();
  Events().WriteLost("orphan", store, where);
  logs::Warn("AP401", "orphan " + where,
             "a write to " + Shown(store) + " was made outside any scope, so nothing can wait for it. Open one with a "
             "middleware or antipode::Scope; in a thread use antipode::Carry(). site=" + where);
}

Removal Remove(const WriteId& id) { return Remove(Lineage(id)); }

Removal Remove(const Lineage& lineage) {
  const ScopePtr scope = CurrentScope();
  return scope == nullptr ? Removal() : scope->Remove(lineage);
}

Removal RemoveStore(const std::string& store) {
  const ScopePtr scope = CurrentScope();
  return scope == nullptr ? Removal() : scope->RemoveStore(store);
}

void Transfer(const Lineage& lineage, Site site) {
  if (const ScopePtr scope = CurrentScope()) {
    scope->Transfer(lineage, site);
  } else if (!lineage.empty()) {
    const std::vector<std::string> stores = lineage.stores();
    CountOrphan(stores.empty() ? std::string() : stores.front(), site);
  }
}

Result<std::string> Serialize(Site site) {
  const ScopePtr scope = CurrentScope();
  if (scope == nullptr) {
    return Error{ErrorCode::kConfiguration, "AP101",
                 "antipode::Serialize() was called outside any scope. (site: " + site.ToString() + ")"};
  }
  const Result<Lineage> outgoing = scope->Outgoing(site);
  if (!outgoing) return outgoing.error();
  return outgoing->Serialize();
}

Result<Lineage> Deserialize(std::string_view text) { return Lineage::Deserialize(text); }

}  // namespace antipode
