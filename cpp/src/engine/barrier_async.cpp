#include <exception>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/logs.h"
#include "engine/completions.h"
#include "engine/held_result.h"
#include "engine/run.h"
#include "engine/threads.h"
#include "engine/waiting.h"

namespace antipode {

// One barrier that nobody blocks on. It runs once: released, at its deadline, or cancelled, whichever comes first.
class Waiter::Waiting : public Completion, public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(BarrierCallback callback, std::function<void(std::function<void()>)> executor)
      : callback_(std::move(callback)), executor_(std::move(executor)) {}

  void Start(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
    Begun begun = Begin(lineage, options, site);
    if (begun.result) {
      result_ = std::move(begun.result);
      Wake();
      return;
    }
    plan_ = std::move(begun.plan);
    auto group = std::make_shared<Group>(plan_->timeout, [self = weak_from_this()] {
      if (auto waiting = self.lock()) Completions::Instance().Now(std::move(waiting));
    });
    group->looks_twice = plan_->LooksTwice();
    group_ = group;
    for (const auto& [server, write_id] : plan_->Wanted()) server->Park(group->Add(*write_id, server));
    // The group cannot be over before `Parked` is called: until then all of this is this thread's own.
    const bool has_places = places_.Take(*group);
    if (!threads::MayStart()) {
      Run(true);
      return;
    }
    Completions::Instance().At(DeadlineOf(*group), shared_from_this());
    if (!group->Parked() || !has_places) Completions::Instance().Now(shared_from_this());
  }

  void Cancel() {
    cancelled_.store(true, std::memory_order_release);
    Wake();
  }

  void Run(bool /*due*/) override {
    if (!result_) {
      if (cancelled_.load(std::memory_order_acquire)) {
        group_->cancelled.store(true);
        group_->Refuse(Visibility::NotYet("cancelled"));
      }
      group_->GiveUp();
      places_.GiveBack();
      result_ = Finish(*plan_, *group_);
      plan_.reset();  // here, and not on the thread that happens to let go last
      group_.reset();
    }
    Deliver();
  }

 private:
  void Wake() {
    if (threads::MayStart()) {
      Completions::Instance().Now(shared_from_this());
    } else {
      Run(false);
    }
  }

  void Deliver() {
    BarrierCallback callback = std::exchange(callback_, nullptr);
    if (!callback) return;
    auto call = [callback = std::move(callback), result = *result_] {
      try {
        callback(result);
      } catch (const std::exception& error) {
        logs::Say("AP501", LogLevel::kError, std::string("a callback of BarrierAsync threw: ") + error.what());
      } catch (...) {
        logs::Say("AP501", LogLevel::kError, "a callback of BarrierAsync threw");
      }
    };
    if (!executor_) {
      call();
      return;
    }
    try {
      executor_(call);
    } catch (const std::exception& error) {
      const std::string words = error.what();
      logs::Say("AP501", LogLevel::kError, "an executor of BarrierAsync refused its work: " + words);
      call();
    }
  }

  BarrierCallback callback_;
  const std::function<void(std::function<void()>)> executor_;
  std::optional<BarrierResult> result_;
  std::unique_ptr<Plan> plan_;
  std::shared_ptr<Group> group_;
  Places places_{true};
  std::atomic<bool> cancelled_{false};
};

void Waiter::Cancel() {
  if (waiting_) waiting_->Cancel();
}

namespace {

Waiter Async(const Lineage* lineage, const BarrierOptions& options, BarrierCallback callback, bool by_executor,
             const Site& site) {
  auto waiting = std::make_shared<Waiter::Waiting>(std::move(callback), by_executor ? options.executor() : nullptr);
  waiting->Start(lineage, options, site);
  return Waiter(std::move(waiting));
}

std::future<BarrierResult> AsyncFuture(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
  auto promise = std::make_shared<std::promise<BarrierResult>>();
  std::future<BarrierResult> future = promise->get_future();
  Async(lineage, options, [promise](BarrierResult result) { promise->set_value(std::move(result)); }, false, site);
  return future;
}

}  // namespace

std::future<BarrierResult> BarrierAsync(const BarrierOptions& options, Site site) {
  return AsyncFuture(nullptr, options, site);
}

std::future<BarrierResult> BarrierAsync(const Lineage& lineage, const BarrierOptions& options, Site site) {
  return AsyncFuture(&lineage, options, site);
}

Waiter BarrierAsync(const BarrierOptions& options, BarrierCallback callback, Site site) {
  return Async(nullptr, options, std::move(callback), true, site);
}

Waiter BarrierAsync(const Lineage& lineage, const BarrierOptions& options, BarrierCallback callback, Site site) {
  return Async(&lineage, options, std::move(callback), true, site);
}

}  // namespace antipode
