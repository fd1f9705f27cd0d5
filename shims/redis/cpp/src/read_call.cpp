#include "read_call.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "antipode/settings.h"

namespace antipode::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kFirstPause = 1ms;
constexpr std::chrono::nanoseconds kLastPause = 50ms;

}  // namespace

std::shared_ptr<ReadCall> ReadCall::Make(Binding& binding, const Site& site, bool tells) {
  if (!binding.store->records()) return nullptr;
  if (!binding.waits() && !(tells && CurrentSettings()->auto_merge) && CurrentReading() == nullptr) return nullptr;
  ReadOptions options;
  options.waits = binding.waits();
  options.collects = tells;
  options.is_told = false;
  std::shared_ptr<ReadCall> call(new ReadCall(binding, std::make_shared<Read>(binding.store, options, site)));
  call->Begin();
  return call;
}

std::shared_ptr<ReadCall> ReadCall::ForTaking(Binding& binding, const Site& site) {
  if (!IsCollected(binding)) return nullptr;
  ReadOptions options;
  options.is_told = false;
  return std::shared_ptr<ReadCall>(new ReadCall(binding, std::make_shared<Read>(binding.store, options, site)));
}

bool ReadCall::IsCollected(const Binding& binding) {
  if (!binding.store->records()) return false;
  return CurrentReading() != nullptr || (CurrentSettings()->auto_merge && CurrentScope() != nullptr);
}

std::shared_ptr<const Read> ReadCall::Reader(const Binding& binding) {
  ReadOptions options;
  options.waits = binding.waits();
  options.collects = options.is_told = false;
  return std::make_shared<const Read>(binding.store, options);
}

std::shared_ptr<Read> ReadCall::Told(const Binding& binding, bool is_sure, const Site& site) {
  if (!Read::IsHeard(*binding.store)) return nullptr;
  ReadOptions options;
  options.collects = false;
  options.is_sure = is_sure;
  auto told = std::make_shared<Read>(binding.store, options, site);
  return told->is_told() ? told : nullptr;
}

std::shared_ptr<ReadCall> ReadCall::CaseShims(Binding& binding, const Site& site) {
  auto call = Make(binding, site, true);
  return call != nullptr && (call->collects() || !call->ids_.empty() || call->refusal_) ? call : nullptr;
}

std::shared_ptr<ReadCall> ReadCall::ForSending(Binding& binding, const Site& site) {
  auto call = Make(binding, site, true);
  return call != nullptr && (call->collects() || call->read_->scope() != nullptr) ? call : nullptr;
}

std::shared_ptr<ReadCall> ReadCall::ForWaiting(Binding& binding, const Site& site) {
  return Make(binding, site, false);
}

void ReadCall::Begin() {
  auto wanted = read_->Required();
  refusal_ = wanted.ok() ? std::optional<Error>() : wanted.error();
  ids_ = wanted.ok() ? std::move(wanted).value() : std::vector<WriteId>();
  timeout_ = binding_.Timeout();
  began_ = Clock::now();
  deadline_ = began_ + timeout_;
  const auto end = read_->scope() != nullptr ? read_->scope()->deadline() : std::nullopt;
  if (end) deadline_ = std::min(deadline_, *end);
  backoff_ = kFirstPause;
}

bool ReadCall::Renew() {
  Begin();
  return !Lineage(ids_).IsCoveredBy(proof_);
}

std::vector<std::string> ReadCall::Fields() const {
  std::set<std::string> epochs;
  for (const WriteId& id : ids_) {
    if (id.ordered() != nullptr && id.ordered()->epoch != epoch_) epochs.insert(id.ordered()->epoch);
  }
  if (epochs.empty()) return {};
  std::vector<std::string> fields = {epoch_.empty() ? "-" : epoch_};
  fields.insert(fields.end(), epochs.begin(), epochs.end());
  return fields;
}

bool ReadCall::Learned(const std::string& epoch) {
  const bool changed = epoch != epoch_;
  epoch_ = epoch;
  return changed && !Fields().empty();
}

std::optional<Visibility> ReadCall::Judge(const ServerState& seen) const {
  std::optional<Visibility> worst;
  for (const WriteId& id : ids_) {
    Visibility answer = redis::Judge(id, seen);
    if (answer.verdict == Verdict::kUnproven) return answer;
    if (answer.verdict != Verdict::kVisible) worst = std::move(answer);
  }
  return worst;
}

bool ReadCall::Again(const std::optional<Visibility>& trouble) {
  trouble_ = trouble;
  if (!trouble) proof_ = Lineage(ids_);
  if (!trouble || trouble->verdict == Verdict::kUnproven) return false;
  const auto left = deadline_ - Clock::now();
  if (left <= 0ns) return false;
  const Verdict told = WaitForServer(binding_.server, Lineage(ids_), left).verdict;
  const auto still = deadline_ - Clock::now();
  if (told != Verdict::kVisible && still <= 0ns) return true;  // one last look
  if (told != Verdict::kVisible || backoff_ != kFirstPause) {
    // The engine may be overloaded, or know the server's life before this one: never in a hurry.
    std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(still, 0ns, backoff_));
  }
  backoff_ = std::min(backoff_ * 2, kLastPause);
  return true;
}

void ReadCall::Late() {
  trouble_ = Visibility::NotYet("no answer came on the connection of the read itself, which is closed");
}

void ReadCall::Refused(const std::string& words) {
  const bool is_right = words.compare(0, 6, "NOPERM") == 0;
  if (!ids_.empty()) {
    trouble_ = Visibility::Unproven("its user may not ask where it is (" + words + ")",
                                    is_right ? UnprovenKind::kRight : UnprovenKind::kOther);
  }
  binding_.Denied(words);
}

void ReadCall::Saw(const std::optional<Replication>& now) {
  const auto position = now ? now->Position() : std::nullopt;
  std::optional<WriteId> id;
  if (position) {
    if (auto made = WriteId::Position(binding_.name(), position->epoch, position->counter); made.ok()) id = *made;
  }
  for (const auto& told : std::exchange(told_, {})) {
    if (id && collects()) told->Covered(*id);
  }
  if (id) {
    read_->Saw({*id});
  } else {
    read_->Mark();
  }
}

void ReadCall::SawBeside(const Beside& beside) {
  read_->Saw({}, beside.lineage);
  if (beside.missed) read_->Mark();
}

Result<void> ReadCall::Past() const {
  return read_->RefusePast(
      "it reads inside a MULTI what nobody has waited for, and inside nothing can be asked: begin the MULTI in the "
      "scope that reads, after its writes, or read before it");
}

Result<void> ReadCall::Finish() {
  if (refusal_) return *refusal_;
  if (!trouble_) return {};
  const auto milliseconds = std::chrono::round<std::chrono::milliseconds>(timeout_).count();
  const std::string words = binding_.name() + " at " + binding_.target.Address() + ": " + trouble_->reason +
                            ". The read waited for it " + std::to_string(milliseconds) + " ms at most";
  StoreResult judged{Verdict::kTimedOut, words, Clock::now() - began_, {}};
  if (trouble_->verdict == Verdict::kUnproven || trouble_->unknown_epoch) {
    judged.verdict = Verdict::kUnproven;
    judged.kind = trouble_->unknown_epoch ? UnprovenKind::kHistory : trouble_->kind;
  }
  return read_->Refuse(std::move(judged));
}

}  // namespace antipode::redis
