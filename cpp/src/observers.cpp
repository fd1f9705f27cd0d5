#include "observers.h"

namespace antipode {
namespace {

std::atomic<Observer*> first{nullptr};

}  // namespace

class EveryObserver final : public Observer {
 public:
  void LineageDropped(std::string_view reason, std::string_view direction) override {
    Tell(&Observer::LineageDropped, reason, direction);
  }
  void LineageIncomplete(const IncompleteLineage& lineage) override { Tell(&Observer::LineageIncomplete, lineage); }
  void LineageSized(std::string_view direction, std::size_t length) override {
    Tell(&Observer::LineageSized, direction, length);
  }
  void LineageLeftEarly(std::string_view site,
                        const std::vector<std::shared_ptr<PendingWrite>>& uncommitted) override {
    Tell(&Observer::LineageLeftEarly, site, uncommitted);
  }
  void WriteLost(std::string_view reason, std::string_view store, std::string_view site) override {
    Tell(&Observer::WriteLost, reason, store, site);
  }
  void WriteLate(std::string_view store, std::string_view site) override { Tell(&Observer::WriteLate, store, site); }
  void Fallback(std::string_view outcome) override { Tell(&Observer::Fallback, outcome); }
  void ServerAsked(std::string_view store, std::string_view purpose) override {
    Tell(&Observer::ServerAsked, store, purpose);
  }
  void MarksMissing(std::string_view store, std::string_view reason) override {
    Tell(&Observer::MarksMissing, store, reason);
  }
  void BarrierWaited(const Plan& plan, const BarrierResult& result, const Group& group,
                     BarrierOutcome outcome) override {
    Tell(&Observer::BarrierWaited, plan, result, group, outcome);
  }

 private:
  template <typename... Taken, typename... Given>
  static void Tell(void (Observer::*event)(Taken...), Given&... given) {
    for (Observer* each = first.load(std::memory_order_acquire); each != nullptr;
         each = each->next_.load(std::memory_order_acquire)) {
      (each->*event)(given...);
    }
  }
};

std::string_view ToString(BarrierOutcome outcome) noexcept {
  switch (outcome) {
    case BarrierOutcome::kFree:
      return "free";
    case BarrierOutcome::kSatisfied:
      return "satisfied";
    case BarrierOutcome::kTimedOut:
      return "timed_out";
    case BarrierOutcome::kUnproven:
      return "unproven";
    case BarrierOutcome::kVacuous:
      return "vacuous";
    case BarrierOutcome::kIncomplete:
      return "incomplete";
    case BarrierOutcome::kOverloaded:
      return "overloaded";
  }
  return "timed_out";
}

void AddObserver(Observer& observer) noexcept {
  std::atomic<Observer*>* last = &first;
  Observer* found = nullptr;
  while (!last->compare_exchange_strong(found, &observer)) {
    last = &found->next_;
    found = nullptr;
  }
}

Observer& Events() noexcept {
  static EveryObserver every;
  static const bool has_own = (AddOwnObservers(), true);
  static_cast<void>(has_own);
  return every;
}

}  // namespace antipode
