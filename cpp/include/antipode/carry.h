/// \file
/// `Carry`: taking the scope along into threads, pools and work that outlives the request (spec SCOPE-12).
#ifndef ANTIPODE_CARRY_H_
#define ANTIPODE_CARRY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

class LineageScope;
class ReadingBlock;

/// What a thread's current scope and block of reads were; a detached scope stays open while this has not been released.
class CarriedContext {
 public:
  /// That of the calling thread.
  CarriedContext();
  CarriedContext(const CarriedContext&) = delete;
  CarriedContext& operator=(const CarriedContext&) = delete;
  ~CarriedContext();

  /// Lets a detached scope close; once, later calls do nothing.
  void Release();

  /// Makes it the calling thread's until the object ends, when the thread's own is restored.
  class [[nodiscard]] Entered {
   public:
    explicit Entered(const CarriedContext& context);
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered();

   private:
    std::uint64_t entered_;
  };

 private:
  std::shared_ptr<LineageScope> scope_;
  std::shared_ptr<ReadingBlock> reading_;
  std::atomic<bool> holds_{false};
};

namespace detail {

template <typename Function>
class CarriedWork {
 public:
  explicit CarriedWork(Function function)
      : context_(std::make_shared<CarriedContext>()), function_(std::move(function)) {}

  template <typename... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) {
    // Ends after the call: work that carries a detached scope keeps it open until it has run once.
    struct ReleasingWork {
      CarriedContext& context;
      ~ReleasingWork() { context.Release(); }
    } const releasing{*context_};
    const CarriedContext::Entered entered(*context_);
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  std::shared_ptr<CarriedContext> context_;
  Function function_;
};

}  // namespace detail

/// A function that runs in the scope that is current now, in whichever thread it is called.
///
/// A detached scope stays open until it has run once, or until its last copy is gone.
template <typename Function>
detail::CarriedWork<std::decay_t<Function>> Carry(Function&& function) {
  return detail::CarriedWork<std::decay_t<Function>>(std::forward<Function>(function));
}

/// A pool round this one whose work runs in the scope in which it was posted; for pools with `Post(function)`.
template <typename Pool>
class CarryingPool {
 public:
  explicit CarryingPool(Pool& pool) : pool_(pool) {}

  template <typename Function>
  decltype(auto) Post(Function&& function) {
    return pool_.Post(Carry(std::forward<Function>(function)));
  }

 private:
  Pool& pool_;
};

/// A pool round this one whose work runs in the scope in which it was posted.
template <typename Pool>
CarryingPool<Pool> CarryAll(Pool& pool) {
  return CarryingPool<Pool>(pool);
}

}  // namespace antipode

#endif  // ANTIPODE_CARRY_H_
