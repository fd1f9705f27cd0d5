#include "antipode/barrier_result.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/held_result.h"
#include "model/text.h"

namespace antipode {
namespace {

std::string Milliseconds(std::chrono::nanoseconds time) {
  return std::to_string(std::llround(std::chrono::duration<double>(time).count() * 1000));
}

std::string Spaced(std::string_view word) {
  std::string spaced(word);
  std::replace(spaced.begin(), spaced.end(), '_', ' ');
  return spaced;
}

MessageCode CodeOf(UnprovenKind kind) {
  switch (kind) {
    case UnprovenKind::kHistory:
      return "AP202";
    case UnprovenKind::kRight:
      return "AP203";
    case UnprovenKind::kConnection:
      return "AP204";
    case UnprovenKind::kNotOpened:
      return "AP104";
    case UnprovenKind::kMisspelt:
      return "AP107";
    case UnprovenKind::kDiscovery:
      return "AP207";
    case UnprovenKind::kUnfit:
      return "AP208";
    case UnprovenKind::kOwnFault:
      return "AP209";
    case UnprovenKind::kOther:
      break;
  }
  return "AP299";
}

std::string Short(const std::string& name, const StoreResult& store) {
  if (store.verdict == Verdict::kElsewhere) return name + " elsewhere (not registered in this process)";
  if (store.verdict != Verdict::kVisible) return name + " " + Spaced(ToString(store.verdict)) + ": " + store.reason;
  const std::vector<std::string> left = store.LeftOut();
  return name + " visible" + (left.empty() ? "" : " (" + Joined(left, ", ") + " left out)");
}

}  // namespace

MessageCode StoreResult::message_code() const {
  switch (verdict) {
    case Verdict::kVisible:
      return LeftOut().empty() ? MessageCode::None() : "AP206";
    case Verdict::kTimedOut:
    case Verdict::kNotYet:
      return overloaded ? "AP205" : "AP201";
    case Verdict::kElsewhere:
      return "AP103";
    case Verdict::kUnproven:
      break;
  }
  return CodeOf(kind.value_or(UnprovenKind::kOther));
}

std::vector<std::string> StoreResult::LeftOut() const {
  std::vector<std::string> left;
  for (const ServerResult& server : servers) {
    if (server.left_out) left.push_back(server.address);
  }
  return left;
}

bool BarrierResult::satisfied() const noexcept { return held_->satisfied; }

bool BarrierResult::complete() const noexcept { return held_->satisfied && !held_->left_unjudged; }

bool BarrierResult::vacuous() const noexcept { return held_->vacuous; }

bool BarrierResult::dry_run() const noexcept { return held_->dry_run; }

std::chrono::nanoseconds BarrierResult::waited() const noexcept { return held_->waited; }

const StoreResults& BarrierResult::stores() const noexcept { return held_->stores; }

const StoreResult& BarrierResult::store(const std::string& name) const {
  static const auto* const unjudged = new StoreResult{Verdict::kElsewhere, "not judged by this barrier", {}, {}};
  const auto found = held_->stores.find(name);
  return found == held_->stores.end() ? *unjudged : found->second;
}

const std::vector<Gap>& BarrierResult::gaps() const noexcept { return held_->gaps; }

const Error* BarrierResult::error() const noexcept { return held_->error ? &*held_->error : nullptr; }

std::string BarrierResult::ToString() const {
  if (held_->all_off) return "switched off (mode=off): nothing was looked at or waited for";
  std::vector<std::string> told;
  for (const auto& [name, store] : held_->stores) told.push_back(Short(name, store));
  for (const std::string& name : held_->off) told.push_back(name + " switched off (its mode), not looked at");
  if (held_->error && told.empty()) {  // nothing was judged: mostly the call was a mistake
    return std::string(held_->satisfied ? "satisfied, but: " : "not satisfied: ") + held_->error->message;
  }
  const std::string how = held_->dry_run ? "dry run, nothing was waited for"
                                         : std::string(held_->satisfied ? "satisfied" : "not satisfied") + " in " +
                                               Milliseconds(held_->waited) + " ms";
  return how + ": " + (told.empty() ? "nothing to wait for" : Joined(told, "; "));
}

std::string BarrierResult::Explain() const {
  const bool waited_for_nothing = !held_->all_off && !held_->error && held_->stores.empty() && held_->off.empty();
  std::string lines = WithCode(ToString(), waited_for_nothing ? "AP102" : MessageCode::None());
  for (const auto& [name, store] : held_->stores) {
    std::string line = name + ": " + std::string(antipode::ToString(store.verdict));
    if (store.kind) line += ", " + std::string(antipode::ToString(*store.kind));
    lines += "\n  " + WithCode(line + " (" + store.reason + ")", store.message_code());
  }
  for (const Gap& gap : held_->gaps) {
    std::string line = "incomplete: " + gap.reason;
    for (const std::string& word : {gap.store, gap.detail}) line += word.empty() ? "" : " " + word;
    lines += "\n  " + WithCode(line, gap.message_code());
  }
  if (held_->error) lines += "\n" + std::string(ErrorName(held_->error->code)) + ": " + held_->error->message;
  return lines;
}

BarrierResult WithoutWait(const BarrierResult& result) {
  auto held = std::make_shared<BarrierResult::Held>(result.held());
  held->waited = {};
  held->error.reset();
  return BarrierResult(std::move(held));
}

BarrierResult Mistaken(Error error) {
  auto held = std::make_shared<BarrierResult::Held>();
  held->left_unjudged = true;
  held->error = std::move(error);
  return BarrierResult(std::move(held));
}

}  // namespace antipode
