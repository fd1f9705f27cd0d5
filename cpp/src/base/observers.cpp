#include "base/observers.h"

#include "antipode/shim/read_observer.h"
#include "antipode/shim/write_observer.h"

namespace antipode {
namespace {

std::atomic<Observer*> first{nullptr};

}  // namespace

class EveryObserver final : public Observer {
 public:
  void RequestBegun() override { Tell(&Observer::RequestBegun); }
  void ScopeOpened(ScopeKind kind) override { Tell(&Observer::ScopeOpened, kind); }
  void ScopesJoined(LineageScope& ended, LineageScope& scope) override { Tell(&Observer::ScopesJoined, ended, scope); }
  void StoreJoined(const Store& store) override { Tell(&Observer::StoreJoined, store); }
  void SettingsChanged() override { Tell(&Observer::SettingsChanged); }
  void WriteBegun(std::string_view store) override { Tell(&Observer::WriteBegun, store); }
  std::unique_ptr<WriteObserver> WriteObserved(const std::shared_ptr<LineageScope>& scope, const Store& store,
                                               const Lineage& lineage) override {
    return Ask(&Observer::WriteObserved, scope, store, lineage);
  }
  void ReadBegun(const ReadRequest& read, ReadObservers& observers) override {
    Tell(&Observer::ReadBegun, read, observers);
  }
  void LineageDropped(std::string_view reason, std::string_view direction) override {
    Tell(&Observer::LineageDropped, reason, direction);
  }
  void LineageIncomplete(const IncompleteLineage& lineage) override { Tell(&Observer::LineageIncomplete, lineage); }
  void IncompleteLineageReceived(std::string_view store, const LineageScope& scope) override {
    Tell(&Observer::IncompleteLineageReceived, store, scope);
  }
  void LineageArrived(LineageScope& scope, const Lineage& lineage) override {
    Tell(&Observer::LineageArrived, scope, lineage);
  }
  void LineageReceived(LineageScope& scope, const std::vector<std::string>& messages,
                       const Lineage& lineage) override {
    Tell(&Observer::LineageReceived, scope, messages, lineage);
  }
  std::string MessageNamed() override { return Ask(&Observer::MessageNamed); }
  void LineageSent(LineageScope& scope, const std::string& message, const Lineage& lineage) override {
    Tell(&Observer::LineageSent, scope, message, lineage);
  }
  void LineageSized(std::string_view direction, std::size_t length) override {
    Tell(&Observer::LineageSized, direction, length);
  }
  void LineagePassedOn(LineageScope& scope, std::string_view target, std::string_view site) override {
    Tell(&Observer::LineagePassedOn, scope, target, site);
  }
  void LineageLeftEarly(std::string_view site,
                        const std::vector<std::shared_ptr<PendingWrite>>& uncommitted) override {
    Tell(&Observer::LineageLeftEarly, site, uncommitted);
  }
  void WriteConcurrent(std::string_view site, const PendingWrite& write) override {
    Tell(&Observer::WriteConcurrent, site, write);
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
  std::shared_ptr<WaitGroup> BarrierRecorded(const Plan& plan, const std::vector<StoreRequest>& asked) override {
    return Ask(&Observer::BarrierRecorded, plan, asked);
  }
  void BarrierEnforced() override { Tell(&Observer::BarrierEnforced); }
  void BarrierWaited(const Plan& plan, const BarrierResult& result, const WaitGroup& group,
                     BarrierOutcome outcome) override {
    Tell(&Observer::BarrierWaited, plan, result, group, outcome);
  }
  void EngineStopped() override { Tell(&Observer::EngineStopped); }

 private:
  static Observer* First() { return first.load(std::memory_order_acquire); }
  static Observer* After(const Observer& observer) { return observer.next_.load(std::memory_order_acquire); }

  template <typename... Parameters, typename... Given>
  static void Tell(void (Observer::*event)(Parameters...), Given&... given) {
    for (Observer* each = First(); each != nullptr; each = After(*each)) (each->*event)(given...);
  }

  template <typename Answer, typename... Parameters, typename... Given>
  static Answer Ask(Answer (Observer::*event)(Parameters...), Given&... given) {
    for (Observer* each = First(); each != nullptr; each = After(*each)) {
      if (Answer answer = (each->*event)(given...); answer != Answer()) return answer;
    }
    return Answer();
  }
};

std::unique_ptr<WriteObserver> Observer::WriteObserved(const std::shared_ptr<LineageScope>& /*scope*/,
                                                       const Store& /*store*/, const Lineage& /*lineage*/) {
  return nullptr;
}

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
