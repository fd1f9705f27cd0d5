#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/logs.h"
#include "engine/barrier_waits.h"
#include "engine/completions.h"
#include "engine/run.h"
#include "engine/threads.h"
#include "engine/waiting.h"
#include "model/held_result.h"
#include "store/server.h"

namespace antipode {

// One barrier that nobody blocks on. It runs once: released, at its deadline, or cancelled, whichever comes first; and
// once more behind each further wait (BAR-65).
class Waiter::Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(BarrierCallback callback, std::function<void(std::function<void()>)> executor)
      : callback_(std::move(callback)), executor_(std::move(executor)) {}

  void Start(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
    BarrierStart begun = Begin(lineage, options, site);
    if (begun.result) {
      result_ = std::move(begun.result);
      Wake(NextRound());
      return;
    }
    waits_ = std::make_unique<BarrierWaits>(std::move(begun.plan));
    Wait();
  }

  void Cancel() {
    cancelled_.store(true);
    std::shared_ptr<Round> round;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      round = round_.lock();
    }
    if (round) Wake(std::move(round));  // else it goes on, or has ended
  }

 private:
  // One of its waits, which ends once. The engine holds it until then.
  class Round : public Completion {
   public:
    explicit Round(std::shared_ptr<Waiting> waiting) : waiting_(std::move(waiting)) {}
    void Run(bool /*due*/) override { waiting_->Run(); }

   private:
    const std::shared_ptr<Waiting> waiting_;
  };

  std::shared_ptr<Round> NextRound() {
    auto round = std::make_shared<Round>(shared_from_this());
    const std::lock_guard<std::mutex> lock(mutex_);
    round_ = round;
    return round;
  }

  void Wait() {
    const std::shared_ptr<Round> round = NextRound();
    const auto group = waits_->Begin([weak = std::weak_ptr<Round>(round)] {
      if (auto released = weak.lock()) Completions::Instance().Now(std::move(released));
    });
    const bool may_start = threads::MayStart();
    bool has_places = false;
    try {
      for (const auto& [server, write_id] : waits_->plan().Wanted()) server->impl().Park(group->Add(*write_id, server));
      // The group cannot be over before `ParkedBarriers` is called: until then all of this is this thread's own.
      has_places = places_.Take(*group);
      if (may_start) Completions::Instance().At(DeadlineOf(*group), round);
    } catch (const std::bad_alloc&) {  // nobody would end what is parked (BAR-61)
      group->GiveUp();
      throw;
    }
    if (!may_start) {
      Run();
      return;
    }
    const bool is_over = !group->Parked() || group->EndOutdated();
    if (is_over || !has_places || cancelled_.load()) Completions::Instance().Now(round);
  }

  void Run() {
    if (!result_) {
      const bool is_cancelled = cancelled_.load();
      if (is_cancelled) waits_->Cancel();
      waits_->group().GiveUp();
      places_.GiveBack();
      if (!is_cancelled && !waits_->Take()) {
        Wait();
        return;
      }
      result_ = Finish(waits_->plan(), waits_->group());
      waits_.reset();  // here, and not on the thread that happens to let go last
    }
    Deliver();
  }

  void Wake(std::shared_ptr<Round> round) {
    if (threads::MayStart()) {
      Completions::Instance().Now(std::move(round));
    } else {
      Run();
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
    } catch (const std::exception& error) {  // nothing here may take memory before the call (BAR-61)
      logs::Say("AP501", LogLevel::kError, "an executor of BarrierAsync refused its work", error.what());
      call();
    } catch (...) {
      logs::Say("AP501", LogLevel::kError, "an executor of BarrierAsync refused its work");
      call();
    }
  }

  BarrierCallback callback_;
  const std::function<void(std::function<void()>)> executor_;
  std::optional<BarrierResult> result_;
  std::unique_ptr<BarrierWaits> waits_;
  Places places_{true};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::weak_ptr<Round> round_;  // the last one; under the lock
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
