#include "antipode/writing.h"

#include "antipode/history.h"

namespace antipode {

Writing::Writing(std::shared_ptr<Store> store, std::string_view key, Site site)
    : store_(std::move(store)), key_(key), site_(site), scope_(CurrentScope()) {
  if (scope_) pending_ = scope_->Begin(store_->name(), site_);
  noted_ = pending_ ? history::NoteWrite(scope_, *store_, pending_->lineage()) : history::NoteWrite(nullptr, *store_, {});
}

Writing::~Writing() {
  if (open_) OutcomeUnknown();
}

Lineage Writing::Beside() const { return scope_ ? scope_->MarkedBut(pending_) : Lineage(); }

Result<WriteId> Writing::Identifier(const Version& version) const {
  const auto* ordered = std::get_if<Ordered>(&version);
  if (store_->capabilities().versions == Versions::kPosition && ordered != nullptr) {
    return WriteId::Position(store_->name(), ordered->epoch, ordered->counter);
  }
  return store_->MakeWriteId(key_, version);
}

void Writing::Record(const Version& version) {
  const Result<WriteId> write_id = Identifier(version);
  if (!write_id.ok()) {
    RecordIncomplete("pending", write_id.error().message);
    return;
  }
  open_ = false;
  if (scope_) {
    scope_->Written(pending_, *write_id, site_);
  } else {
    CountOrphan(store_->name(), site_);
  }
  if (noted_) noted_->Done(*write_id, key_);
}

void Writing::RecordUpperBound(const Ordered& version) {
  open_ = false;
  const Result<WriteId> write_id = WriteId::Position(store_->name(), version.epoch, version.counter);
  if (scope_) {
    if (write_id.ok()) scope_->Append(*write_id, site_);
    scope_->End(pending_);  // last of all, or a copy that left before would lack it unmarked (SCOPE-14)
  } else {
    CountOrphan(store_->name(), site_);
  }
  if (noted_) noted_->Done(write_id.ok() ? std::optional<WriteId>(*write_id) : std::nullopt);
}

void Writing::RecordIncomplete(std::string_view reason, std::string detail) {
  open_ = false;
  if (scope_) {
    scope_->MarkIncomplete(reason, {store_->name()}, std::move(detail), site_);
    scope_->End(pending_);
  } else {
    CountOrphan(store_->name(), site_);
  }
  if (noted_) noted_->Done(std::nullopt, key_);
}

void Writing::Abandon() {
  open_ = false;
  if (scope_) scope_->End(pending_);
  if (noted_) noted_->NotDone();
}

void Writing::OutcomeUnknown() {
  open_ = false;
  if (scope_) scope_->OutcomeUnknown(pending_);
  if (noted_) noted_->Unknown(key_);
}

}  // namespace antipode
