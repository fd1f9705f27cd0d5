// A shim whose servers answer what a test says: for the engine's own rules, which no real store shows on demand.
#ifndef ANTIPODE_TESTS_ENGINE_FAKES_H_
#define ANTIPODE_TESTS_ENGINE_FAKES_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/lineage.h"
#include "antipode/settings.h"
#include "antipode/shim/shim.h"
#include "antipode/store.h"
#include "antipode/testing/isolated.h"
#include "base/time.h"

namespace antipode::testing {

using namespace std::chrono_literals;  // NOLINT: durations of tests

using Ask = std::function<Answers(Span<const WriteId> ids, Server& server)>;

// One server: `answer` says what it answers, `asked` counts the questions.
struct FakeServer {
  FakeServer(std::string its_name, Ask its_answer) : name(std::move(its_name)), answer(std::move(its_answer)) {}

  void Set(Ask other) {
    const std::lock_guard<std::mutex> lock(mutex);
    answer = std::move(other);
  }
  Ask Get() {
    const std::lock_guard<std::mutex> lock(mutex);
    return answer;
  }

  const std::string name;
  std::atomic<int> asked{0};
  std::mutex mutex;
  Ask answer;
};

using FakePtr = std::shared_ptr<FakeServer>;

inline FakePtr MakeFake(std::string name, Ask answer) {
  return std::make_shared<FakeServer>(std::move(name), std::move(answer));
}

class FakeShim : public Shim {
 public:
  Capabilities capabilities() const override { return Capabilities::Objects(); }
  Answers Visible(Span<const WriteId> ids, Server& server) override {
    const auto& fake = *std::any_cast<FakePtr>(&server.target());
    ++fake->asked;
    return fake->Get()(ids, server);
  }
  std::string Address(const std::any& target) const override { return (*std::any_cast<FakePtr>(&target))->name; }
};

// A channel that says again and again that something has changed.
class ManyPushes final : public Watch {
 public:
  explicit ManyPushes(std::function<void()> on_change)
      : thread_([this, on_change = std::move(on_change)] {
          for (; !ended_; std::this_thread::sleep_for(2ms)) {
            on_change();
            ++pushed;
          }
        }) {
    ++opened;
  }
  ~ManyPushes() override {
    ended_ = true;
    thread_.join();
  }
  static inline std::atomic<int> opened{0};
  static inline std::atomic<int> pushed{0};

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Positions, and servers that push so.
class PushingShim final : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions().Push(true); }
  Result<std::unique_ptr<Watch>> OpenWatch(Server&, std::function<void()> on_change) override {
    return std::unique_ptr<Watch>(std::make_unique<ManyPushes>(std::move(on_change)));
  }
};

inline Ask Always(Visibility visibility) {
  return [visibility](Span<const WriteId> ids, Server&) { return Answers(std::vector(ids.size(), visibility)); };
}

inline Ask Down() {
  return [](Span<const WriteId>, Server&) { return Answers::Unreachable("connection refused"); };
}

template <class T = FakeShim>
std::shared_ptr<Store> MakeFakeStore(const std::string& name, const std::vector<FakePtr>& fakes,
                                     std::optional<Mode> mode = std::nullopt) {
  StoreOptions options(name);
  if (!fakes.empty()) options.ReplicaTargets(Targets(fakes.begin(), fakes.end()));
  options.mode = mode;
  return JoinStore(ShimType::Of<T>("fake"), options).value();
}

// Waits for a condition, on a loaded machine.
template <class Condition>
void Until(const Condition& condition, Duration patience = 20s) {
  const TimePoint deadline = Clock::now() + patience;
  while (!condition()) {
    ASSERT_LT(Clock::now(), deadline) << "waited in vain";
    std::this_thread::sleep_for(1ms);
  }
}

inline WriteId Object(const std::string& store, const std::string& key, std::uint64_t counter = 1) {
  return WriteId::Make(store, key, Ordered{"", counter}).value();
}

inline WriteId At(const std::string& store, const std::string& epoch, std::uint64_t counter) {
  return WriteId::Position(store, epoch, counter).value();
}

// A barrier's options that let the application go on whatever the verdicts.
inline BarrierOptions Proceeding(Duration timeout) {
  return BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed);
}

// Every test of the engine has a registry and settings of its own.
class EngineTest : public ::testing::Test {
 protected:
  Isolated isolated_;
};

inline void Set(const SettingWords& words) { ASSERT_TRUE(Configure(words).ok()); }

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_FAKES_H_
