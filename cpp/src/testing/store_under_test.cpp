#include "antipode/testing/store_under_test.h"

#include <atomic>
#include <thread>

#include "antipode/scope.h"
#include "antipode/store.h"
#include "base/time.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

// This store has no such thing; the case that asked for it belongs among the exceptions, with the reason.
[[noreturn]] void NotPossible(const char* primitive) {
  StoreUnderTest::Fail(std::string("this store under test has no ") + primitive +
                       "(): give it, or list the case in exceptions()");
}

}  // namespace

ReadUnderTest StoreUnderTest::Read(const std::string&, const std::string&) { NotPossible("Read"); }
WaysToWrite StoreUnderTest::CommitsInside() { NotPossible("CommitsInside"); }
std::unique_ptr<ClientUnderTest> StoreUnderTest::WrapClient(const std::string&, std::optional<std::vector<std::string>>,
                                                            bool) {
  NotPossible("WrapClient");
}
bool StoreUnderTest::WrapUnused(const std::string&) { return false; }
int StoreUnderTest::PortOf(const std::string&) { NotPossible("PortOf"); }
void StoreUnderTest::RegisterAt(const std::string&, int) { NotPossible("RegisterAt"); }
std::map<std::string, std::function<ReadUnderTest()>> ClientUnderTest::PastMoments(const std::string&) {
  NotPossible("PastMoments");
}
void StoreUnderTest::Delete(const std::string&) { NotPossible("Delete"); }
void StoreUnderTest::RawWrite(const std::string&, const std::string&) { NotPossible("RawWrite"); }
void StoreUnderTest::WriteNothing() { NotPossible("WriteNothing"); }
void StoreUnderTest::Transaction(const std::function<bool(TransactionUnderTest&)>&) { NotPossible("Transaction"); }
void StoreUnderTest::SetLag(const std::string&, Duration) { NotPossible("SetLag"); }
void StoreUnderTest::Partition(const std::string&) { NotPossible("Partition"); }
void StoreUnderTest::Heal(const std::string&) { NotPossible("Heal"); }
void StoreUnderTest::Freeze(const std::string&) { NotPossible("Freeze"); }
void StoreUnderTest::Thaw(const std::string&) { NotPossible("Thaw"); }
void StoreUnderTest::Restart(const std::string&) { NotPossible("Restart"); }
void StoreUnderTest::Repoint(const std::string&, const std::string&) { NotPossible("Repoint"); }
void StoreUnderTest::Promote(const std::string&, const std::function<void()>&) { NotPossible("Promote"); }
void StoreUnderTest::WaitMarked(const Lineage&) {
  if (capabilities().marks == Marks::kInBand) NotPossible("WaitMarked");
}
bool StoreUnderTest::WriteWithUnknownOutcome(const std::string&, const std::string&) {
  NotPossible("WriteWithUnknownOutcome");
}
bool StoreUnderTest::WriteRefused(const std::string&) { NotPossible("WriteRefused"); }
Result<void> StoreUnderTest::WriteWithoutRights(const std::string&, const std::string&) {
  NotPossible("WriteWithoutRights");
}
Result<void> StoreUnderTest::WrapUnfit() { NotPossible("WrapUnfit"); }

std::string StoreUnderTest::far() const {
  if (replicas().size() < 2) NotPossible("second replica");
  return replicas().back();
}

std::string StoreUnderTest::NewKey(const std::string& word) {
  static std::atomic<int> numbers{0};
  return "kit-" + word + "-" + std::to_string(++numbers) + "-" +
         std::to_string(Clock::now().time_since_epoch().count());
}

Lineage StoreUnderTest::Written(const std::string& key, const std::string& value) {
  const Scope scope;
  Write(key, value);
  return scope.lineage();
}

BarrierResult StoreUnderTest::Judge(const Lineage& lineage, Duration timeout) const {
  const TimePoint began = Clock::now();
  BarrierResult result = Barrier(
      lineage,
      BarrierOptions().Timeout(timeout).Stores({name}).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed));
  const Duration took = Clock::now() - began;
  Check(took < timeout + slack, "a hang: " + std::to_string(Seconds(took)) + " s with a deadline of " +
                                    std::to_string(Seconds(timeout)) + " s");
  Check(result.error() == nullptr, result.Explain());
  return result;
}

Verdict StoreUnderTest::VerdictOf(const Lineage& lineage, Duration timeout) const {
  return Judge(lineage, timeout).store(name).verdict;
}

bool StoreUnderTest::Shows(const std::string& key, const std::optional<std::string>& value,
                           std::vector<std::string> servers) {
  if (servers.empty()) servers = replicas();
  for (const std::string& server : servers) {
    if (Look(key, server) != value) return false;
  }
  return true;
}

void StoreUnderTest::Until(const std::function<bool()>& condition, const std::string& what) const {
  const TimePoint deadline = Clock::now() + patience;
  while (!condition()) {
    Check(Clock::now() < deadline, "in vain: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::int64_t StoreUnderTest::Parked() const {
  const auto store = FindStore(name);
  return store.ok() ? (*store)->impl().parked() : 0;
}

}  // namespace antipode::testing
