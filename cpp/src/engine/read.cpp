#include "antipode/shim/read.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "antipode/settings.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "base/time.h"
#include "engine/judgement.h"
#include "engine/waiting.h"
#include "model/held_result.h"
#include "store/registry.h"

namespace antipode {
namespace {

Result<void> Fail(const std::string& store, StoreResult judged, const ScopePtr& scope, MessageCode code) {
  const auto now = InForce();
  const bool is_unproven = judged.verdict == Verdict::kUnproven;
  const bool by_unproven = is_unproven && now->on_unproven != Policy::kAsTimeout;
  const Policy policy = by_unproven ? now->on_unproven : now->on_timeout;
  if (policy == Policy::kProceed) return {};
  judged.reason += " (wait on read)";
  const std::string told = judged.reason;
  auto held = std::make_shared<BarrierResult::Held>();
  held->waited = judged.waited;
  held->left_unjudged = true;
  held->stores.emplace(store, std::move(judged));
  auto result = std::make_shared<const BarrierResult>(std::move(held));
  if (policy == Policy::kRedeliver && scope && scope->delivery()) {
    return Error{ErrorCode::kRedeliver, code, "give the message back: " + told, std::move(result)};
  }
  return Error{is_unproven ? ErrorCode::kUnproven : ErrorCode::kTimedOut, code, told, std::move(result)};
}

}  // namespace

Read::Read(std::shared_ptr<Store> store, const ReadOptions& options, Site site)
    : store_(std::move(store)),
      site_(site),
      scope_(CurrentScope()),
      after_(CurrentReading()),
      reading_(options.collects ? after_ : nullptr),
      waits_(options.waits) {
  merges_ = options.collects && scope_ != nullptr && CurrentSettings()->auto_merge && store_->records();
  if (options.is_told && IsHeard(*store_)) {
    Events().ReadBegun({store_, scope_, after_, site_, options.keys, options.is_sure}, observers_);
  }
}

Read::~Read() = default;

bool Read::IsHeard(const Store& store) {
  return store.mode() == Mode::kDryRun || !CurrentSettings()->history.empty();
}

bool Read::may_wait() const {
  return (waits_ && scope_ != nullptr) || (after_ != nullptr && after_->after().has_value());
}

Result<std::vector<WriteId>> Read::Required() const {
  if (!may_wait() || store_->mode() != Mode::kEnforce) return std::vector<WriteId>();
  const bool is_after = after_ != nullptr && after_->after().has_value();
  const Lineage lineage = is_after ? *after_->after() : scope_->Known();
  if (auto misspelt = MisspeltIn(lineage, store_->name())) {
    const std::string words = store_->name() + ": " + misspelt->reason + ". The read waited for nothing";
    const auto allowed = Refuse({Verdict::kUnproven, words, {}, {}, UnprovenKind::kMisspelt});
    if (!allowed.ok()) return allowed.error();
  }
  return lineage.OfStore(store_->name());
}

Result<bool> Read::Wait(const std::shared_ptr<Server>& server, Duration timeout) const {
  const auto required = Required();
  if (!required.ok()) return required.error();
  if (required->empty()) return true;
  const TimePoint began = Clock::now();
  const auto deadline = scope_ ? scope_->deadline() : std::nullopt;
  if (deadline) timeout = std::min<Duration>(timeout, std::max<Duration>(*deadline - began, Duration::zero()));
  StoreResult judged = WaitForServer(server, Lineage(*required), timeout);
  if (judged.verdict == Verdict::kVisible) return true;
  judged.reason = store_->name() + " at " + server->address() + ": " + std::string(ToString(judged.verdict)) + " (" +
                  judged.reason + "). The read waited for it " + std::to_string(std::llround(Seconds(timeout) * 1000)) +
                  " ms";
  judged.waited = Clock::now() - began;
  const Result<void> allowed = Refuse(std::move(judged));
  if (!allowed.ok()) return allowed.error();
  return false;
}

Result<void> Read::Refuse(StoreResult judged) const {
  const MessageCode code = judged.message_code();
  return Fail(store_->name(), std::move(judged), scope_, code);
}

Result<void> Read::RefusePast(const std::string& words) const {
  const std::string told = store_->name() + ": " + words + ", and waiting makes it no newer";
  return Fail(store_->name(), {Verdict::kUnproven, told, {}, {}, UnprovenKind::kOther}, scope_, "AP514");
}

void Read::Returned(const ReadReply& reply) {
  Told(reply);
  if (collects()) {
    Lineage depends;
    for (const ReadValue& each : reply.values) {
      if (each.covers) Covered(*each.covers);
      const std::optional<WriteId>& own = each.covers ? each.covers : each.version;
      depends |= own ? each.lineage.Including(*own) : each.lineage;
      if (!each.is_known) depends = depends.MarkedIncomplete({store_->name()});
    }
    End();  // before the scope has what it read
    Saw({}, depends);
  }
  End();
}

void Read::Told(const ReadReply& reply) noexcept {
  for (const auto& each : observers_) each->Returned(reply);
}

void Read::Covered(const WriteId& position) noexcept {
  for (const auto& each : observers_) each->Covered(position);
}

void Read::Saw(const std::vector<WriteId>& ids, const Lineage& lineage) const {
  if (reading_ != nullptr) reading_->Saw(ids, lineage);
  if (merges_) scope_->TransferRead(lineage | Lineage(ids), site_);
}

void Read::Mark() const {
  if (reading_ != nullptr) reading_->Marked(store_->name());
  if (merges_) scope_->TransferRead(Lineage().MarkedIncomplete({store_->name()}), site_);
}

StoreResult WaitForServer(const std::shared_ptr<Server>& server, const Lineage& lineage, Duration timeout) {
  const TimePoint began = Clock::now();
  const std::vector<WriteId> ids = lineage.OfStore(server->store().name());
  WantedWrites wanted;
  for (const WriteId& write_id : ids) wanted.emplace_back(server, &write_id);
  const auto group = std::make_shared<WaitGroup>(timeout);
  WaitFor(*group, wanted);
  return JudgeAlone(*server, *group, Clock::now() - began);
}

}  // namespace antipode
