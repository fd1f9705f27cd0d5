// The observer port: whoever is added takes the events that it overrides, and no others.
#include "base/observers.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "antipode/scope.h"
#include "engine/log_test.h"
#include "engine/records_test.h"
#include "environment.h"

namespace antipode::testing {
namespace {

// Keeps some kinds of events.
class Listener final : public Observer {
 public:
  void WriteLost(std::string_view reason, std::string_view store, std::string_view /*site*/) override {
    Keep(reason, store);
  }
  void LineageIncomplete(const IncompleteLineage& lineage) override { Keep(lineage.reason, lineage.store); }
  void RequestBegun() override { Keep("barrier", ""); }

  std::vector<std::pair<std::string, std::string>> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(heard_, {});
  }

 private:
  void Keep(std::string_view what, std::string_view store) {
    const std::lock_guard<std::mutex> lock(mutex_);
    heard_.emplace_back(what, store);
  }

  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> heard_;
};

// An observer stays for the life of the process.
Listener& TheListener() {
  static auto* const added = [] {
    auto* const made = new Listener();
    AddObserver(*made);
    return made;
  }();
  static_cast<void>(added->Take());
  return *added;
}

using Heard = std::vector<std::pair<std::string, std::string>>;

TEST(ObserversTest, AnObserverTakesWhatItOverrides) {
  const Isolation isolation;
  Listener& listener = TheListener();
  Append(*WriteId::Make("posts", "k", Ordered{"e", 1}));
  const Scope scope;
  scope->MarkIncomplete("stream", {"posts"});
  EXPECT_EQ(listener.Take(), (Heard{{"orphan", "posts"}, {"stream", "posts"}}));
}

TEST(ObserversTest, WhoDoesNotOverrideAnEventDoesNothingThenAndTheOthersTakeIt) {
  const Isolation isolation;
  Listener& listener = TheListener();
  Events().Fallback("run");
  Events().LineageDropped("malformed", "request_in");
  EXPECT_EQ(listener.Take(), Heard());
  EXPECT_EQ(Isolation::Counted("antipode.fallback.count", {"outcome=run"}), 1U);
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=malformed"}), 1U);
}

using ObservedBarriersTest = LogTest;

// BAR-33.
TEST_F(ObservedBarriersTest, ABarrierSaysThatItBeginsButOnTheFreePath) {
  Listener& listener = TheListener();
  log_->Move(10);
  const Scope scope(Upto(5));
  ASSERT_TRUE(Barrier().satisfied());
  EXPECT_EQ(listener.Take(), (Heard{{"barrier", ""}}));
  Until([&] { return Barrier().satisfied() && listener.Take().empty(); });
}

using ObservedDryRunTest = RecordsTest;

// REC-17: no other record says it, and none is made twice.
TEST_F(ObservedDryRunTest, DryRunRecordsWhatAnotherRecordDoesNotSay) {
  Be(Mode::kDryRun);
  Events().LineageIncomplete({"pending", "posts", nullptr, {}, false});
  Events().LineageIncomplete({"stream", "posts", nullptr, "engine/observers_test.cpp:7"});
  const std::vector<Json> written = Written("incomplete");
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written.front().at("reason"), "stream");
  EXPECT_EQ(written.front().at("site"), "engine/observers_test.cpp:7");
}

}  // namespace
}  // namespace antipode::testing
