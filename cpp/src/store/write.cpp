#include "antipode/shim/write.h"

#include <algorithm>

#include "antipode/settings.h"
#include "base/observers.h"
#include "scope/context.h"
#include "scope/unscoped.h"

namespace antipode {

Writing::Writing(std::shared_ptr<Store> store, std::string_view key, Site site) : store_(std::move(store)), key_(key) {
  JoinScope(site);
}

Writing::~Writing() {
  if (open_) OutcomeUnknown();
}

void Writing::JoinScope(const Site& site) { Join(CurrentScope(), site, false); }

void Writing::JoinCommitter() {
  if (!open_) return;
  if (ScopePtr scope = CurrentScope()) Join(std::move(scope), parts_.front().site, true);
}

void Writing::Join(ScopePtr scope, const Site& site, bool is_late) {
  const auto own = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.scope == scope; });
  if (own != parts_.end()) return;
  if (scope == nullptr) context::BeginOutside(this);
  PendingPtr pending = scope ? scope->Begin(store_->name(), site) : nullptr;
  std::unique_ptr<WriteObserver> noted;
  if (!CurrentSettings()->history.empty()) {
    noted = Events().WriteObserved(scope, *store_, pending ? pending->lineage() : Lineage());
  }
  parts_.push_back({std::move(scope), site, std::move(pending), std::move(noted), is_late});
}

Lineage Writing::Beside(bool lineage_out) const {
  const ScopePtr scope = CurrentScope();
  const auto own = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.scope == scope; });
  const Part& part = own == parts_.end() ? parts_.front() : *own;
  return part.scope ? part.scope->MarkedBut(part.pending) : LineageUnscoped(lineage_out, part.site, this);
}

WriteObserver* Writing::noted() const { return parts_.front().noted.get(); }

Result<WriteId> Writing::Identifier(const Version& version) const {
  const auto* ordered = std::get_if<Ordered>(&version);
  if (store_->capabilities().versions == Versions::kPosition && ordered != nullptr) {
    return WriteId::Position(store_->name(), ordered->epoch, ordered->counter);
  }
  return store_->MakeWriteId(key_, version);
}

void Writing::Settle(const Result<WriteId>& id, bool checks) {
  if (!id.ok()) {  // the write has happened, and no lineage can hold its version
    RecordIncomplete("pending", id.error().Words());
    return;
  }
  open_ = false;
  for (Part& part : parts_) {
    if (!part.scope) {
      CountOrphan(store_->name(), part.site);
    } else if (checks && !part.is_late) {
      part.scope->Written(part.pending, *id, part.site);
    } else {
      part.scope->Append(*id, part.site);
      part.scope->End(part.pending);  // last of all, or a copy that left before would lack it unmarked (SCOPE-14)
    }
    if (part.noted) part.noted->Done(*id, key_);
  }
}

void Writing::Record(const Version& version) { Settle(Identifier(version), true); }

void Writing::RecordUpperBound(const Ordered& version) {
  Settle(WriteId::Position(store_->name(), version.epoch, version.counter), false);
}

void Writing::RecordIncomplete(std::string_view reason, std::string detail) {
  open_ = false;
  for (Part& part : parts_) {
    if (part.scope) {
      part.scope->MarkIncomplete(reason, {store_->name()}, detail, part.site);
      part.scope->End(part.pending);
    } else {
      CountOrphan(store_->name(), part.site);
    }
    if (part.noted) part.noted->Done(std::nullopt, key_);
  }
}

void Writing::Abandon() {
  open_ = false;
  for (Part& part : parts_) {
    if (part.scope) part.scope->End(part.pending);
    if (part.noted) part.noted->NotDone();
  }
}

void Writing::OutcomeUnknown() {
  open_ = false;
  for (Part& part : parts_) {
    if (part.scope) {
      part.scope->OutcomeUnknown(part.pending);
    } else {
      context::KnowLineage();
    }
    if (part.noted) part.noted->Unknown(key_);
  }
}

}  // namespace antipode
