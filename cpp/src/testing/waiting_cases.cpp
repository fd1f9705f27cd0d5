// Cases about waiting: deadlines, cancellation, crowds, the free path (spec BAR-28 to BAR-41).
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "antipode/scope.h"
#include "antipode/telemetry.h"
#include "base/time.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

constexpr int kCrowd = 2000;
constexpr int kLineages = 20;

void Set(const SettingWords& words) { Store::Check(Configure(words).ok(), "configure"); }

// The questions that were asked of the store's servers since the case began.
std::int64_t Questions(const Store& store) {
  std::int64_t asked = 0;
  for (const Measurement& measured : Measurements()) {
    if (measured.name != "antipode.wait.requests") continue;
    const auto of = measured.attributes.find("antipode.store");
    if (of != measured.attributes.end() && of->second == store.name) asked += measured.count;
  }
  return asked;
}

std::int64_t FreePasses() {
  for (const Measurement& measured : Measurements()) {
    if (measured.name == "antipode.barrier.count" && measured.attributes.at("antipode.outcome") == "free") {
      return measured.count;
    }
  }
  return 0;
}

// A barrier ends at its deadline, with an error that names the store; a timeout of 0 looks (BAR-28, BAR-29).
void Deadline(Store& store) {
  const std::string key = Store::NewKey();
  store.Partition(store.near());
  const Lineage lineage = store.Written(key);
  const BarrierResult late = Barrier(lineage, BarrierOptions().Timeout(store.brief));
  Store::Check(late.error() != nullptr && late.error()->code == ErrorCode::kTimedOut, late.Explain());
  Store::Check(late.error()->message.find(store.name) != std::string::npos, late.error()->message);
  Store::Check(late.store(store.name).verdict == Verdict::kTimedOut, late.Explain());
  Store::Check(store.VerdictOf(lineage, Duration::zero()) == Verdict::kNotYet, "a look is no wait");
  store.Heal(store.near());
  Store::Check(store.Passes(lineage), "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A cancelled barrier gives its place up, and the next one passes (BAR-32).
void Cancellation(Store& store) {
  store.Partition(store.near());
  const Lineage lineage = store.Written(Store::NewKey());
  const auto promise = std::make_shared<std::promise<BarrierResult>>();
  auto ended = promise->get_future();
  Waiter waiter = BarrierAsync(lineage, BarrierOptions().Timeout(store.patience),
                               [promise](BarrierResult result) { promise->set_value(std::move(result)); });
  store.Until([&] { return store.Parked() == 1; }, "the barrier waits");
  waiter.Cancel();
  Store::Check(ended.wait_for(store.patience) == std::future_status::ready, "the callback is not called");
  const BarrierResult cancelled = ended.get();
  Store::Check(cancelled.store(store.name).verdict == Verdict::kTimedOut, cancelled.Explain());
  Store::Check(store.Parked() == 0, "its place is not given up");
  store.Heal(store.near());
  Store::Check(BarrierAsync(lineage, BarrierOptions().Timeout(store.patience)).get().satisfied(), "no pass");
}

// A crowd waits with no more questions than one barrier asks, and all of it is released (BAR-38).
void ThousandsOfWaiters(Store& store) {
  SettingWords words;
  words.max_tasks = 2 * kCrowd;
  Set(words);
  store.Partition(store.near());
  std::vector<std::string> keys;
  std::vector<Lineage> lineages;
  for (int number = 0; number < kLineages; ++number) {
    keys.push_back(Store::NewKey());
    lineages.push_back(store.Written(keys.back()));
  }
  const std::int64_t before = Questions(store);
  std::vector<std::future<BarrierResult>> waits;
  for (std::size_t number = 0; number < kCrowd; ++number) {
    waits.push_back(BarrierAsync(lineages[number % kLineages], BarrierOptions().Timeout(3 * store.patience)));
  }
  store.Until([&] { return store.Parked() >= kCrowd; }, "all of them wait");
  store.Heal(store.near());
  for (auto& wait : waits) Store::Check(wait.get().satisfied(), "no pass");
  const std::int64_t asked = Questions(store) - before;
  Store::Check(asked < kCrowd, std::to_string(asked) + " questions for " + std::to_string(kCrowd) + " waiters");
  for (const std::string& key : keys) Store::Check(store.Shows(key, "v"), "a false pass");
}

// A shim that declares a push is woken by it: without, the next question would come too late (SHIM-18).
void Push(Store& store) {
  if (!store.capabilities().push) throw CaseSkipped("the shim declares no push");
  SettingWords words;
  words.poll = 10 * store.patience;
  Set(words);
  store.Partition(store.near());
  const std::string key = Store::NewKey();
  const Lineage lineage = store.Written(key);
  bool passed = false;
  CaseThread waiting([&] { passed = store.Passes(lineage); });
  store.Until([&] { return store.Parked() == 1; }, "the barrier waits");
  store.Heal(store.near());
  waiting.Join();
  Store::Check(passed, "no pass");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// Past the greatest number of waiters a barrier is answered at once (BAR-39).
void Overload(Store& store) {
  SettingWords words;
  words.max_waiters = 1;
  Set(words);
  store.Partition(store.near());
  const Lineage lineage = store.Written(Store::NewKey());
  std::atomic<bool> ended{false};
  bool passed = false;
  CaseThread waiting([&] {
    passed = store.Passes(lineage);
    ended = true;
  });
  store.Until([&] { return store.Parked() == 1; }, "the barrier waits");
  const BarrierResult refused = store.Judge(lineage);
  Store::Check(refused.store(store.name).verdict == Verdict::kTimedOut, refused.Explain());
  Store::Check(refused.store(store.name).reason.find("overloaded") != std::string::npos, refused.Explain());
  Store::Check(!ended, "the first one has ended");
  store.Heal(store.near());
  waiting.Join();
  Store::Check(passed, "no pass");
}

// Behind waits in vain for a key or epoch, what is there is looked up, and what comes in time passes (BAR-40).
void ReopenedNeed(Store& store) {
  constexpr int kInVain = 7;
  SettingWords words;
  words.free_path_ttl = Duration::zero();
  Set(words);
  const std::string key = Store::NewKey();
  const Lineage there = store.Written(key);
  store.Until([&] { return store.Shows(key, "v"); }, "the write arrives");
  const Lineage never = UnheardOf(store, there);
  for (int time = 0; time < kInVain; ++time) {
    Store::Check(!store.Judge(never, 2 * store.brief).satisfied(), "a false pass");
  }
  const BarrierResult result = store.Judge(there, 2 * store.brief);
  Store::Check(result.satisfied(), result.Explain());
  store.Partition(store.near());
  const std::string late_key = Store::NewKey();
  const Lineage late = store.Written(late_key);
  std::atomic<bool> ended{false};
  std::string outcome;
  CaseThread waiting([&] {
    const BarrierResult judged = store.Judge(late);
    if (!judged.satisfied()) outcome = judged.Explain();
    ended = true;
  });
  store.Until([&] { return store.Parked() > 0 || ended; }, "the barrier waits");
  store.Heal(store.near());
  waiting.Join();
  Store::Check(outcome.empty(), outcome);
  Store::Check(store.Shows(late_key, "v"), "a false pass");
}

// No descriptor is left to this process while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// A fault of our own while servers are asked proves nothing, and leaves none of them out (BAR-61).
void OwnFault(Store& store) {
  SettingWords words;
  words.free_path_ttl = Duration::zero();
  words.reconnect = std::chrono::milliseconds(100);
  words.replica_out_after = store.brief;
  Set(words);
  const std::string key = Store::NewKey();
  const Lineage lineage = store.Written(key);
  {
    const NoDescriptors none;  // nobody has been asked: nothing is there to ask with
    const BarrierResult result = store.Judge(lineage, 2 * store.brief);
    Store::Check(!result.satisfied(), "a false pass");
    Store::Check(result.store(store.name).kind == UnprovenKind::kOwnFault, result.Explain());
  }
  store.Until([&] { return store.Judge(lineage, std::chrono::seconds(1)).complete(); }, "it is whole again");
  {
    const NoDescriptors none;  // and now connections are to be made anew
    const TimePoint until = Clock::now() + 6 * store.brief;
    while (Clock::now() < until) {
      const BarrierResult result = store.Judge(lineage, store.brief);
      Store::Check(result.store(store.name).LeftOut().empty(), "the fault is a server's: " + result.Explain());
    }
  }
  store.Until([&] { return store.Judge(lineage, std::chrono::seconds(1)).complete(); }, "it is whole again");
  Store::Check(store.Shows(key, "v"), "a false pass");
}

// A barrier that repeats what was proved lately asks nobody (BAR-35).
void FreePath(Store& store) {
  SettingWords words;
  words.free_path_ttl = std::chrono::seconds(60);
  Set(words);
  const Scope scope;
  store.Write(Store::NewKey(), "v");
  Store::Check(Barrier(BarrierOptions().Timeout(store.patience)).satisfied(), "no pass");
  const std::int64_t before = FreePasses();
  for (int number = 0; number < 10; ++number) {
    Store::Check(Barrier(BarrierOptions().Timeout(store.patience)).satisfied(), "no pass");
  }
  Store::Check(FreePasses() == before + 10, std::to_string(FreePasses() - before) + " of 10 were free");
}

}  // namespace

std::vector<Case> CasesOfWaiting() {
  return {
      {"deadline", kAny, false, Deadline},
      {"cancellation", kAny, false, Cancellation},
      {"thousands_of_waiters", kAny, false, ThousandsOfWaiters},
      {"push", kAny, false, Push},
      {"overload", kAny, false, Overload},
      {"reopened_need", kAny, false, ReopenedNeed},
      {"own_fault", kAny, false, OwnFault},
      {"free_path", kPositions, false, FreePath},
  };
}

}  // namespace antipode::testing
