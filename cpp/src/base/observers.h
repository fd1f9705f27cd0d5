// The observer port: the lower rooms say what happens, and none of them knows who listens.
//
// Telemetry, dry-run, histories and the announcement are observers; `AddOwnObservers` adds them before the first event
// of the process. An event that no observer takes does nothing. The free path of a barrier calls nobody: it adds to a
// plain number (`CountBarrier`).
#ifndef ANTIPODE_SRC_BASE_OBSERVERS_H_
#define ANTIPODE_SRC_BASE_OBSERVERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

class BarrierResult;
class WaitGroup;
class Lineage;
class LineageScope;
class PendingWrite;
class ReadObserver;
class ReadingBlock;
class Site;
class Store;
class WriteObserver;
enum class ScopeKind;
struct StoreRequest;
struct Plan;

// What a barrier came to (OBS-2).
enum class BarrierOutcome { kFree, kSatisfied, kTimedOut, kUnproven, kVacuous, kIncomplete, kOverloaded };

inline constexpr std::array kBarrierOutcomes = {
    BarrierOutcome::kFree,    BarrierOutcome::kSatisfied,  BarrierOutcome::kTimedOut,  BarrierOutcome::kUnproven,
    BarrierOutcome::kVacuous, BarrierOutcome::kIncomplete, BarrierOutcome::kOverloaded};

// Return the attribute of metrics: `timed_out`.
std::string_view ToString(BarrierOutcome outcome) noexcept;

namespace detail {
inline std::array<std::atomic<std::uint64_t>, kBarrierOutcomes.size()> barriers{};
}  // namespace detail

// Count one more barrier of this outcome, the free ones included.
inline void CountBarrier(BarrierOutcome outcome) noexcept {
  detail::barriers[static_cast<std::size_t>(outcome)].fetch_add(1, std::memory_order_relaxed);
}

// Return how many barriers of this outcome there were.
inline std::uint64_t CountedBarriers(BarrierOutcome outcome) noexcept {
  return detail::barriers[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
}

// How a lineage became incomplete in this process.
struct IncompleteLineage {
  std::string_view reason;              // one of OBS-2
  std::string_view store = {};          // what it is incomplete in; empty: anywhere
  const LineageScope* scope = nullptr;  // whose it is; null: outside any
  std::string_view site = {};           // empty where nobody knows it
  bool is_recorded = true;  // whether dry-run makes a record of it (REC-17); it does not where another record says so
};

// A read that is about to be sent.
struct ReadRequest {
  const std::shared_ptr<Store>& store;
  const std::shared_ptr<LineageScope>& scope;    // null: outside any
  const std::shared_ptr<ReadingBlock>& reading;  // null: in no block
  const Site& site;
  const std::optional<std::vector<std::string>>& keys;  // of a store of objects; nothing where nobody knows them
  bool is_sure;                                         // whether it surely reads data
};

using ReadObservers = std::vector<std::unique_ptr<ReadObserver>>;

// A listener to what the lower rooms say: it overrides the events that it wants; the others do nothing.
//
// Any thread may call it, also several at once, and none that holds a lock of a scope; it does not wait. It is never
// destroyed: threads of an application may outlive `main`. Where an event gives something back, the first answer counts
// that says anything.
class Observer {
 public:
  constexpr Observer() noexcept = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Note that a request comes in, or that a barrier begins which does not take the free path (OBS-8).
  virtual void RequestBegun() {}

  // Note that a scope of this kind was opened.
  virtual void ScopeOpened(ScopeKind /*kind*/) {}

  // Note that what one scope depends on goes into another of this process (HIST-26).
  virtual void ScopesJoined(LineageScope& /*ended*/, LineageScope& /*scope*/) {}

  // Note that a store has joined the process, or joined once more.
  virtual void StoreJoined(const Store& /*store*/) {}

  // Note that code has changed the settings.
  virtual void SettingsChanged() {}

  // Note that a write to this store begins; told in dry-run alone.
  virtual void WriteBegun(std::string_view /*store*/) {}

  // Note that a write is about to be sent, by a scope (null: outside any) that carries this lineage, and return who is
  // to be told what becomes of it; told where a history is recorded alone.
  virtual std::unique_ptr<WriteObserver> WriteObserved(const std::shared_ptr<LineageScope>& scope, const Store& store,
                                                       const Lineage& lineage);

  // Note that a read is about to be sent, and add who is to be told what becomes of it; told in dry-run and where a
  // history is recorded.
  virtual void ReadBegun(const ReadRequest& /*read*/, ReadObservers& /*observers*/) {}

  // Note that a lineage was not believed or not understood (OBS-2).
  virtual void LineageDropped(std::string_view /*reason*/, std::string_view /*direction*/) {}

  // Note that a lineage became incomplete in this process.
  virtual void LineageIncomplete(const IncompleteLineage& /*lineage*/) {}

  // Note that a lineage which came in was incomplete in this store already (REC-17); told in dry-run alone.
  virtual void IncompleteLineageReceived(std::string_view /*store*/, const LineageScope& /*scope*/) {}

  // Note that a lineage came by another way than a message, a value or a copy of a scope (HIST-33).
  virtual void LineageArrived(LineageScope& /*scope*/, const Lineage& /*lineage*/) {}

  // Note that these messages came, with a lineage that named them; or one of somebody who records nothing.
  virtual void LineageReceived(LineageScope& /*scope*/, const std::vector<std::string>& /*messages*/,
                               const Lineage& /*lineage*/) {}

  // Return the name of a message that leaves, for its lineage to bear (HIST-30); empty: it has none.
  virtual std::string MessageNamed() { return {}; }

  // Note that a message leaves with this lineage, which names it.
  virtual void LineageSent(LineageScope& /*scope*/, const std::string& /*message*/, const Lineage& /*lineage*/) {}

  // Note that a lineage of so many bytes went in this direction.
  virtual void LineageSized(std::string_view /*direction*/, std::size_t /*length*/) {}

  // Note that a scope's lineage leaves with a call to this host (REC-18); told in dry-run alone.
  virtual void LineagePassedOn(LineageScope& /*scope*/, std::string_view /*target*/, std::string_view /*site*/) {}

  // Note that a lineage left at this site before the commit of its own thread's writes (SCOPE-18).
  virtual void LineageLeftEarly(std::string_view /*site*/,
                                const std::vector<std::shared_ptr<PendingWrite>>& /*uncommitted*/) {}

  // Note that a lineage left while another thread's write was in flight (SCOPE-18); told in dry-run alone.
  virtual void WriteConcurrent(std::string_view /*site*/, const PendingWrite& /*write*/) {}

  // Note that no scope has a write: made outside any (`orphan`), or after its scope had ended (`closed`).
  virtual void WriteLost(std::string_view /*reason*/, std::string_view /*store*/, std::string_view /*site*/) {}

  // Note that a write was made after the response's header had left (PROP-16).
  virtual void WriteLate(std::string_view /*store*/, std::string_view /*site*/) {}

  // Note that a fallback read was `run` or `refused`.
  virtual void Fallback(std::string_view /*outcome*/) {}

  // Note that a server was asked because somebody waits: `wait`, `probe` or `mark`.
  virtual void ServerAsked(std::string_view /*store*/, std::string_view /*purpose*/) {}

  // Note why this process may not mark a store's epochs; empty: it may (EPOCH-26).
  virtual void MarksMissing(std::string_view /*store*/, std::string_view /*reason*/) {}

  // Follow what a barrier asks of these stores with nobody waiting (dry-run), and return the needs of the first look.
  virtual std::shared_ptr<WaitGroup> BarrierRecorded(const Plan& /*plan*/, const std::vector<StoreRequest>& /*asked*/) {
    return nullptr;
  }

  // Note that a barrier waited for all that it was asked for, and passed (REC-26).
  virtual void BarrierEnforced() {}

  // Note what came of a barrier that had to wait (OBS-1).
  virtual void BarrierWaited(const Plan& /*plan*/, const BarrierResult& /*result*/, const WaitGroup& /*group*/,
                             BarrierOutcome /*outcome*/) {}

  // Note that the threads of the engine have ended, by `Shutdown` or with the process: what is left is to be written.
  virtual void EngineStopped() {}

 protected:
  ~Observer() = default;

 private:
  friend class EveryObserver;
  friend void AddObserver(Observer& observer) noexcept;

  std::atomic<Observer*> next_{nullptr};
};

// Have an observer, which is not added yet, take its events from now on.
void AddObserver(Observer& observer) noexcept;

// Return what is called: it tells each event to every observer, in the order in which they were added.
Observer& Events() noexcept;

// Add the observers of this library. The facade defines it, and `Events` calls it first of all: no object of a static
// library that the linker drops has to do it, and no constructor of a global.
void AddOwnObservers() noexcept;

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_OBSERVERS_H_
