// The memory store in recorded histories, of each kind of versions; and whole stories (HIST-28).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "antipode/antipode.h"
#include "antipode/memory.h"
#include "diagnostics/recorder.h"
#include "history_test.h"

namespace antipode::testing {
namespace {

using namespace std::chrono_literals;
using Json = History::Json;

class HistoryMemoryTest : public ::testing::TestWithParam<Versions> {
 protected:
  HistoryMemoryTest() : store_(MemoryOptions{"posts", {"a", "b"}, 60s, {}, GetParam(), false, 0, nullptr}) {}

  const Isolated isolated_;
  const History history_;
  MemoryStore store_;
};

// Every line of a write has its identifier, and what a read found says which write it is.
TEST_P(HistoryMemoryTest, WritesAndReads) {
  MemoryClient client = store_.Client("a");
  std::vector<Lineage> left;
  {
    const Scope scope;
    EXPECT_EQ(client.Get("1").value, std::nullopt);
    EXPECT_TRUE(client.Set("1", "x").ok());
    left.push_back(scope.lineage());
    EXPECT_EQ(client.Get("1").value, "x");
    EXPECT_TRUE(client.Delete("1").ok());
    EXPECT_EQ(client.Get("1").value, std::nullopt);
  }
  const std::vector<Json> writes = history_.Lines("write", {"key", "value", "there", "identifier", "any_key"});
  const std::vector<Json> reads = history_.Lines("read", {"key", "value", "version", "reads_from", "covers"});
  ASSERT_EQ(writes.size(), 2U);
  ASSERT_EQ(reads.size(), 3U);
  EXPECT_EQ(writes[0], (Json{{"key", "1"}, {"there", true}, {"identifier", left[0].Serialize()}}));
  EXPECT_EQ(writes[1].at("value"), nullptr);
  EXPECT_EQ(reads[0], (Json{{"key", "1"}, {"value", nullptr}}));
  EXPECT_EQ(reads[1], (Json{{"key", "1"}, {"version", writes[0].at("identifier")}}));
  EXPECT_EQ(reads[2].at("value"), nullptr);
}

// What a read puts into lineages is a position that no write needs to have.
TEST_P(HistoryMemoryTest, ReadsThatMergeCoverTheirPosition) {
  SettingWords words;
  words.auto_merge = true;
  ASSERT_TRUE(Configure(words).ok());
  MemoryClient client = store_.Client("a");
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
  }
  store_.Put("unrecorded", "moves the position");
  std::string text;
  {
    const Scope scope;
    EXPECT_EQ(client.Get("1").value, "x");
    text = OutgoingMessage().value().value_or("");
  }
  {
    const Scope scope = MessageScope(text);
    EXPECT_EQ(client.Get("1").value, "x");
  }
  for (const Json& read : history_.Lines("read", {"covers"})) {
    EXPECT_EQ(read.contains("covers"), GetParam() == Versions::kPosition);
  }
  const History::Decided decided = history_.Decide(ANTIPODE_COMMAND);
  EXPECT_EQ(decided.exit_code, 0) << decided.said;
}

// A replica that lags, and a barrier or none: the number of violations is the run's own.
TEST_P(HistoryMemoryTest, TheStoryWithAndWithoutABarrier) {
  for (const bool waits : {false, true}) {
    const std::string prefix = waits ? "waited-" : "";
    MemoryClient writer = store_.Client("a", StoreOptions("posts").ReplicaTargets(store_.TargetsOf({"b"})));
    MemoryClient reader = store_.Client("b");
    int missing = 0;
    for (int number = 0; number < 20; ++number) {
      const std::string key = prefix + std::to_string(number);
      if (!waits) store_.SetLag("b", number % 2 == 0 ? std::chrono::nanoseconds(60s) : 0ns);
      if (waits) store_.SetLag("b", 5ms);
      std::string text;
      {
        const Scope scope;
        EXPECT_TRUE(writer.Set(key, "x").ok());
        text = OutgoingMessage().value().value_or("");
      }
      const Scope scope = MessageScope(text);
      if (waits) {
        EXPECT_TRUE(Barrier(BarrierOptions().Timeout(10s)).satisfied());
      }
      missing += reader.Get(key).value ? 0 : 1;
      if (!waits) store_.Heal("b");
    }
    EXPECT_EQ(missing > 0, !waits);
    const History::Decided decided = history_.Decide(ANTIPODE_COMMAND);
    EXPECT_EQ(decided.exit_code, waits ? 0 : 1) << decided.said;
    EXPECT_EQ(decided.violations(), static_cast<std::size_t>(missing)) << decided.said;
    EXPECT_EQ(decided.gaps(), "[]");
    history::Forget();
    for (const auto& file : std::filesystem::directory_iterator(history_.folder())) {
      std::filesystem::remove(file.path());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, HistoryMemoryTest,
                         ::testing::Values(Versions::kPosition, Versions::kObject, Versions::kOpaque),
                         [](const auto& each) { return std::string(ToString(each.param)); });

}  // namespace
}  // namespace antipode::testing
