/// \file
/// `Barrier()`: waits until the writes of a lineage are visible here, or says why not (paper 5.2, spec BAR).
#ifndef ANTIPODE_BARRIER_H_
#define ANTIPODE_BARRIER_H_

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier_result.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/settings.h"
#include "antipode/site.h"
#include "antipode/verdict.h"

namespace antipode ANTIPODE_EXPORT {

/// What one barrier asks for, where it differs from the settings in force.
class BarrierOptions {
 public:
  using Seconds = std::chrono::duration<double>;

  BarrierOptions() = default;

  /// The deadline; by default the store's or the setting's (1 s), and never later than the request's own. Zero looks
  /// without waiting. There is no infinite wait to ask for (BAR-28).
  BarrierOptions& Timeout(Seconds value) { return Set(timeout_, value); }
  /// These stores alone; by default all that this process has registered, and others are carried on as elsewhere.
  BarrierOptions& Stores(std::vector<std::string> names) { return Set(stores_, std::move(names)); }
  /// Every server that readers here may use (`kRegion`, the default), or the wrapped client's (`kReplica`).
  BarrierOptions& Reach(::antipode::Reach value) { return Set(reach_, value); }
  /// Fails also where something was left unjudged.
  BarrierOptions& RequireComplete(bool value = true) {
    require_complete_ = value;
    return *this;
  }
  /// Only records (BAR-49).
  BarrierOptions& DryRun(bool value = true) {
    dry_run_ = value;
    return *this;
  }
  /// What is said of a pass that did not come in time: `kRaise` (the result has an error), `kProceed`, `kRedeliver`.
  BarrierOptions& OnTimeout(Policy value) { return Set(on_timeout_, value); }
  /// Likewise where no proof is possible; also `kAsTimeout`.
  BarrierOptions& OnUnproven(Policy value) { return Set(on_unproven_, value); }
  /// Likewise where nothing could be judged: `kProceed` or `kRaise`.
  BarrierOptions& OnVacuous(Policy value) { return Set(on_vacuous_, value); }
  /// For `BarrierAsync`: runs the callback there, instead of on Antipode's own thread, which nothing may hold up.
  BarrierOptions& Executor(std::function<void(std::function<void()>)> executor) {
    executor_ = std::move(executor);
    return *this;
  }

  const std::optional<Seconds>& timeout() const noexcept { return timeout_; }
  const std::optional<std::vector<std::string>>& stores() const noexcept { return stores_; }
  const std::optional<::antipode::Reach>& reach() const noexcept { return reach_; }
  bool require_complete() const noexcept { return require_complete_; }
  bool dry_run() const noexcept { return dry_run_; }
  const std::optional<Policy>& on_timeout() const noexcept { return on_timeout_; }
  const std::optional<Policy>& on_unproven() const noexcept { return on_unproven_; }
  const std::optional<Policy>& on_vacuous() const noexcept { return on_vacuous_; }
  const std::function<void(std::function<void()>)>& executor() const noexcept { return executor_; }

 private:
  template <class T, class U>
  BarrierOptions& Set(std::optional<T>& member, U&& value) {
    member = std::forward<U>(value);
    return *this;
  }

  std::optional<Seconds> timeout_;
  std::optional<std::vector<std::string>> stores_;
  std::optional<::antipode::Reach> reach_;
  std::optional<Policy> on_timeout_;
  std::optional<Policy> on_unproven_;
  std::optional<Policy> on_vacuous_;
  std::function<void(std::function<void()>)> executor_;
  bool require_complete_ = false;
  bool dry_run_ = false;
};

/// Blocks until the writes of the current scope's lineage, as it is at the call, are visible here, under one deadline,
/// in all stores at once. What came of it is in the result; nothing is thrown.
///
/// On a thread of Antipode's own (a callback of `BarrierAsync` without an executor) it is a mistake: kBlockingCall
/// (BAR-31).
BarrierResult Barrier(const BarrierOptions& options = {}, Site site = Site());

/// The same for a lineage that is given.
BarrierResult Barrier(const Lineage& lineage, const BarrierOptions& options = {}, Site site = Site());

/// What gets the result of a barrier that nobody blocks on. It is called exactly once, never inside `BarrierAsync`.
using BarrierCallback = std::function<void(BarrierResult)>;

/// A barrier that waits with nobody blocked. Letting it go changes nothing.
class Waiter {
 public:
  class Waiting;
  Waiter() = default;
  explicit Waiter(std::shared_ptr<Waiting> waiting) : waiting_(std::move(waiting)) {}

  /// Gives the place up: the callback gets its result now, timed out with the reason `cancelled` where it was not there
  /// yet.
  void Cancel();

 private:
  std::shared_ptr<Waiting> waiting_;
};

/// `Barrier` without blocking: the result comes into the future, exactly once. A future that was made before a fork
/// belongs to the parent.
[[nodiscard]] std::future<BarrierResult> BarrierAsync(const BarrierOptions& options = {}, Site site = Site());
[[nodiscard]] std::future<BarrierResult> BarrierAsync(const Lineage& lineage, const BarrierOptions& options = {},
                                                      Site site = Site());

/// `Barrier` without blocking: the callback gets the result. It runs on Antipode's own thread, or by the options'
/// executor; give it a scope by `Carry`. It must not throw.
Waiter BarrierAsync(const BarrierOptions& options, BarrierCallback callback, Site site = Site());
Waiter BarrierAsync(const Lineage& lineage, const BarrierOptions& options, BarrierCallback callback,
                    Site site = Site());

/// Ends every thread of Antipode's: what waits is answered now as timed out, what was recorded is written. Called by
/// itself when the process ends; a barrier after it begins them anew.
void Shutdown();

}  // namespace antipode

#endif  // ANTIPODE_BARRIER_H_
