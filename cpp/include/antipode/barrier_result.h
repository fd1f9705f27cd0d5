/// \file
/// What a barrier proved (spec BAR): a verdict a store, and two bits.
#ifndef ANTIPODE_BARRIER_RESULT_H_
#define ANTIPODE_BARRIER_RESULT_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/export.h"
#include "antipode/gap.h"
#include "antipode/message_code.h"
#include "antipode/result.h"
#include "antipode/verdict.h"

namespace antipode ANTIPODE_EXPORT {

/// What was found out about one server.
struct ServerResult {
  std::string address;
  Verdict verdict = Verdict::kVisible;
  std::string reason;
  /// It does not answer, or is not listed any more, and the pass does not speak of it (BAR-26, BAR-54).
  bool left_out = false;
  /// Where it is unproven: what kept it from being proved.
  std::optional<UnprovenKind> kind = std::nullopt;
};

/// What was found out about one store, how long that took, and why.
struct StoreResult {
  Verdict verdict = Verdict::kVisible;
  std::string reason;
  std::chrono::nanoseconds waited{};
  std::vector<ServerResult> servers;
  /// Where it is unproven: what kept it from being proved (BAR-59).
  std::optional<UnprovenKind> kind = std::nullopt;
  /// Where it is late: overload answered, not the deadline (BAR-39, BAR-40).
  bool overloaded = false;

  /// The code of its verdict; empty where it is visible at every server (OBS-15).
  MessageCode message_code() const;
  /// The servers that did not answer and of which a pass does not speak.
  std::vector<std::string> LeftOut() const;
};

/// The outcome of a barrier. It has no truth value: ask for `satisfied()` or `complete()`. Copies are cheap.
class [[nodiscard]] BarrierResult {
 public:
  struct Held;
  explicit BarrierResult(std::shared_ptr<const Held> held) : held_(std::move(held)) {}

  /// Nothing that was asked for is missing here (BAR-14).
  bool satisfied() const noexcept;
  /// Satisfied, and nothing was left unjudged: no store elsewhere, no server left out, nothing lost on the way
  /// (BAR-15).
  bool complete() const noexcept;
  /// The lineage had writes, and none of their stores is registered here (BAR-17).
  bool vacuous() const noexcept;
  /// Nothing was waited for or enforced (BAR-48).
  bool dry_run() const noexcept;
  std::chrono::nanoseconds waited() const noexcept;
  /// The verdict of each store of the lineage, by name.
  const std::map<std::string, StoreResult>& stores() const noexcept;
  /// The verdict of one store; a store that the barrier did not judge is `elsewhere`.
  const StoreResult& store(const std::string& name) const;
  /// Why it is not complete, as far as this process knows (BAR-19).
  const std::vector<Gap>& gaps() const noexcept;

  /// What the policies say of it, or the mistake of the call; null where the application goes on (BAR-42, BAR-43).
  ///
  /// Its code is kTimedOut, kUnproven, kIncomplete or kRedeliver; kConfiguration, kUnknownStore or kBlockingCall for
  /// mistakes: then nothing was judged, and neither bit is true.
  const Error* error() const noexcept;

  /// The outcome in a sentence: `satisfied in 83 ms: blog-posts visible; user-acl elsewhere (…)`.
  std::string ToString() const;
  /// The outcome in sentences, one line a store, and the error's words.
  std::string Explain() const;

  /// What it holds, for the engine.
  const Held& held() const noexcept { return *held_; }

  operator bool() const = delete;  // NOLINT(google-explicit-constructor): there is no truth value

 private:
  std::shared_ptr<const Held> held_;
};

}  // namespace antipode

#endif  // ANTIPODE_BARRIER_RESULT_H_
