// The recorder of histories: its file, its order, outcomes, and what it says it does not know (HIST-23 to HIST-27,
// HIST-31).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/scope.h"
#include "antipode/shim/write.h"
#include "antipode/store.h"
#include "antipode/telemetry.h"
#include "diagnostics/recorder.h"
#include "engine/fakes.h"
#include "history_test.h"

namespace antipode::testing {
namespace {

using namespace std::chrono_literals;
using Json = History::Json;

// The application's spans: one, or an error.
class Spans : public TelemetrySink {
 public:
  explicit Spans(std::optional<SpanName> span) : span_(std::move(span)) {}

  void Add(const Instrument&, const Attributes&, std::uint64_t) override {}
  void Record(const Instrument&, const Attributes&, double) override {}
  void Waited(const BarrierSpan&) override {}
  std::optional<SpanName> CurrentSpan() override {
    if (!span_) throw std::runtime_error("for a test");
    return span_;
  }
  void Finding(const EventAttributes&) override {}

 private:
  const std::optional<SpanName> span_;
};

class RecorderTest : public ::testing::Test {
 protected:
  static MemoryStore Posts(Versions versions = Versions::kObject, std::chrono::nanoseconds lag = 60s) {
    return MemoryStore(MemoryOptions{"posts", {"a", "b"}, lag, {}, versions, false, 0, nullptr});
  }
  static std::string Left() { return OutgoingMessage().value().value_or(""); }
  static std::shared_ptr<Store> TheStore() { return FindStore("posts").value(); }
  History::Decided Decided() const { return history_.Decide(ANTIPODE_COMMAND); }

  const Isolated isolated_;
  const History history_;
};

// HIST-1 to HIST-3, HIST-6, HIST-23, HIST-25, HIST-28, HIST-37: begin, operations, end; keys, no values.
TEST_F(RecorderTest, TheFileAndItsLines) {
  MemoryStore posts = Posts();
  MemoryClient writer = posts.Client("a");
  MemoryClient reader = posts.Client("b");
  std::string text;
  {
    const Scope scope;
    EXPECT_TRUE(writer.Set("1", "a secret").ok());
    text = Left();
  }
  {
    const Scope scope = MessageScope(text);
    EXPECT_EQ(reader.Get("1").value, std::nullopt);
  }
  const std::vector<Json> lines = history_.Lines();
  ASSERT_EQ(history_.Kinds(), (std::vector<std::string>{"begin", "write", "send", "receive", "read", "end"}));
  const Json& write = lines[1];
  const Json& read = lines[4];
  EXPECT_EQ(lines[2].at("message"), lines[3].at("message"));
  EXPECT_NE(text.find("~_.msg." + lines[2].at("message").get<std::string>()), std::string::npos) << text;
  EXPECT_EQ(lines[2].at("lineage"), write.at("identifier"));
  EXPECT_EQ(read.at("lineage"), write.at("identifier"));
  EXPECT_EQ(write.at("store"), "posts");
  EXPECT_EQ(write.at("key"), "1");
  EXPECT_EQ(write.at("there"), true);
  EXPECT_EQ(read.at("value"), nullptr);
  std::set<std::string> ids;
  for (const Json& line : lines) {
    EXPECT_EQ(line.at("history"), 1);
    EXPECT_GT(line.at("time").get<double>(), 1.6e9);
    EXPECT_TRUE(ids.insert(line.at("id")).second);
    EXPECT_EQ(line.dump().find("secret"), std::string::npos);
  }
  for (const auto& file : std::filesystem::directory_iterator(history_.folder())) {
    EXPECT_NE(file.path().filename().string().find("-" + std::to_string(getpid()) + "-"), std::string::npos);
  }
}

// The command, which is one for all languages, finds the read.
TEST_F(RecorderTest, TheStoryIsTold) {
  MemoryStore posts = Posts();
  MemoryClient writer = posts.Client("a");
  MemoryClient reader = posts.Client("b");
  std::string text;
  {
    const Scope scope;
    EXPECT_TRUE(writer.Set("1", "hello").ok());
    text = Left();
  }
  history::Forget();  // another process
  {
    const Scope scope = MessageScope(text);
    EXPECT_EQ(reader.Get("1").value, std::nullopt);
  }
  const History::Decided decided = Decided();
  EXPECT_EQ(decided.exit_code, 1) << decided.said;
  EXPECT_EQ(decided.violations(), 1U);
  EXPECT_EQ(decided.gaps(), "[]");
}

// HIST-23
TEST_F(RecorderTest, OffNothingIsWrittenAndNothingAdded) {
  History::Record("");
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  const Scope scope;
  EXPECT_TRUE(client.Set("1", "x").ok());
  EXPECT_EQ(Left().find("msg"), std::string::npos);
  EXPECT_EQ(client.Get("1").value, "x");
  EXPECT_EQ(history::Recorder::InForce(), nullptr);
  EXPECT_TRUE(history_.Lines().empty());
}

// HIST-7: with a trace current, its id is the request's.
TEST_F(RecorderTest, TheTraceIsTheRequest) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  SetTelemetrySink(std::make_shared<Spans>(SpanName{std::string(32, 'a'), std::string(16, 'b')}));
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
  }
  SetTelemetrySink(nullptr);
  EXPECT_EQ(history_.Lines("write", {"request"}), (std::vector<Json>{{{"request", std::string(32, 'a')}}}));
}

// HIST-26: operations that overlap

// A read ends that has found nothing under key 1.
void FindNothing(std::unique_ptr<ReadObserver> read) {
  read->Returned({nullptr, {{"1", history::Content::kNothing}}});
}

TEST_F(RecorderTest, AReadThatWasBegunBeforeAWriteIsNotAfterIt) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  {
    const Scope scope;
    auto early = history::NoteRead(*TheStore(), scope.shared());
    EXPECT_TRUE(client.Set("1", "x").ok());
    FindNothing(std::move(early));
  }
  const History::Decided decided = Decided();
  EXPECT_EQ(decided.exit_code, 0) << decided.said;
  EXPECT_EQ(decided.gaps(), "[]");
}

TEST_F(RecorderTest, WhatOverlappedComesBeforeWhatIsBegunAfterItsEnd) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  {
    const Scope scope;
    auto early = history::NoteRead(*TheStore(), scope.shared());
    EXPECT_TRUE(client.Set("1", "x").ok());
    auto later = history::NoteRead(*TheStore(), scope.shared());
    FindNothing(std::move(later));
    FindNothing(std::move(early));
    FindNothing(history::NoteRead(*TheStore(), scope.shared()));
  }
  const History::Decided decided = Decided();
  EXPECT_EQ(decided.exit_code, 1) << decided.said;
  EXPECT_EQ(decided.violations(), 2U);  // those that were begun after the write, and not the first one
}

TEST_F(RecorderTest, OperationsOfManyThreadsInOneScope) {
  MemoryStore posts = Posts(Versions::kPosition, 0s);
  {
    const Scope scope;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        const Activation here(scope.shared());
        MemoryClient client = posts.Client("a");
        for (int time = 0; time < 25; ++time) {
          const std::string key = std::to_string(thread) + "-" + std::to_string(time);
          EXPECT_TRUE(client.Set(key, "x").ok());
          EXPECT_EQ(client.Get(key).value, "x");
          EXPECT_NE(Left(), "");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::vector<Json> lines = history_.Lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const Json& line) { return line.at("kind") == "write"; }),
            100);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const Json& line) { return line.at("kind") == "read"; }), 100);
  const History::Decided decided = Decided();
  EXPECT_EQ(decided.violations(), 0U) << decided.said;
}

TEST_F(RecorderTest, AReadThatFailedIsNone) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("b");
  posts.Stop("b");
  {
    const Scope scope;
    EXPECT_FALSE(client.Get("1").ok());
  }
  EXPECT_EQ(history_.Kinds(), (std::vector<std::string>{"begin", "end"}));
}

// And on nothing that this one does later.
TEST_F(RecorderTest, ADetachedScopeDependsOnTheOneThatItIsACopyOf) {
  MemoryStore posts = Posts();
  MemoryClient writer = posts.Client("a");
  MemoryClient reader = posts.Client("b");
  ScopePtr copy;
  {
    const Scope scope;
    EXPECT_TRUE(writer.Set("1", "x").ok());
    copy = DetachedScope().shared();
    EXPECT_TRUE(writer.Set("2", "x").ok());
  }
  {
    const Activation here(copy);
    EXPECT_EQ(reader.Get("2").value, std::nullopt);
    EXPECT_EQ(reader.Get("1").value, std::nullopt);
  }
  const History::Decided decided = Decided();
  EXPECT_EQ(decided.exit_code, 1) << decided.said;
  ASSERT_EQ(decided.violations(), 1U) << decided.said;
  const std::string wrong = decided.said.at("violations")[0].at("operation");
  for (const Json& line : history_.Written()) {
    if (line.at("id") == wrong) {
      EXPECT_EQ(line.at("key"), "1");
    }
  }
}

// HIST-27: outcomes

TEST_F(RecorderTest, AWriteOfUnknownOutcomeHasAThreadOfItsOwn) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  posts.LoseNextAnswer();
  {
    const Scope scope;
    EXPECT_FALSE(client.Set("1", "x").ok());
    EXPECT_TRUE(client.Set("2", "y").ok());
  }
  {
    const Scope scope;
    EXPECT_EQ(client.Get("1").value, "x");
  }
  std::string thread;
  for (const Json& line : history_.Lines()) {
    if (line.contains("outcome")) {
      EXPECT_EQ(line.at("outcome"), "unknown");
      EXPECT_FALSE(line.contains("identifier"));
      thread = line.at("scope");
    }
    if (line.at("kind") == "send") {
      EXPECT_NE(line.at("scope"), thread) << "a message goes back from it";
    }
  }
  EXPECT_EQ(thread, "root 1+1");
}

TEST_F(RecorderTest, AWriteOfUnknownOutcomeThatNobodyReadIsLeftOut) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  MemoryClient reader = posts.Client("b");
  posts.LoseNextAnswer();
  {
    const Scope scope;
    EXPECT_FALSE(client.Set("1", "x").ok());
    EXPECT_EQ(reader.Get("1").value, std::nullopt);
  }
  EXPECT_EQ(Decided().exit_code, 0);
}

TEST_F(RecorderTest, AWriteThatWasRefusedIsNone) {
  MemoryStore posts = Posts();
  MemoryClient replica = posts.Client("b");
  {
    const Scope scope;
    EXPECT_FALSE(replica.Set("1", "x").ok());
  }
  EXPECT_EQ(history_.Kinds(), (std::vector<std::string>{"begin", "end"}));
}

TEST_F(RecorderTest, AWriteThatNobodyEndedIsOfUnknownOutcome) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  {
    const Scope scope;
    const Writing write(TheStore(), "1");
  }
  EXPECT_EQ(history_.Lines("write", {"key", "outcome"}), (std::vector<Json>{{{"key", "1"}, {"outcome", "unknown"}}}));
}

TEST_F(RecorderTest, AWriteWhoseVersionCouldNotBeHadHasNoIdentifier) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  {
    const Scope scope;
    Writing write(TheStore(), "1");
    write.RecordIncomplete("pending", "for a test");
  }
  EXPECT_EQ(history_.Lines("write", {"key", "outcome", "identifier"}), (std::vector<Json>{{{"key", "1"}}}));
}

TEST_F(RecorderTest, AWriteOutsideAnyScopeCanBeRead) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  EXPECT_TRUE(client.Set("1", "x").ok());
  {
    const Scope scope;
    EXPECT_EQ(client.Get("1").value, "x");
  }
  EXPECT_EQ(Decided().exit_code, 0);
}

// HIST-24, HIST-25, HIST-31: what is missing is said

TEST_F(RecorderTest, LinesThatWereNotWrittenAreAGap) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  const std::filesystem::path kept = history_.folder().string() + "-kept";
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
    EXPECT_TRUE(FlushHistory(10s));
    std::filesystem::rename(history_.folder(), kept);
    std::ofstream(history_.folder()) << "a file in the folder's place: nothing can be written";
    EXPECT_TRUE(client.Set("2", "x").ok());
    EXPECT_TRUE(FlushHistory(10s));
    std::filesystem::remove(history_.folder());
    EXPECT_TRUE(client.Set("3", "x").ok());
  }
  EXPECT_EQ(history_.Lines("gap", {"reason", "count"}), (std::vector<Json>{{{"reason", "not written"}, {"count", 1}}}));
  EXPECT_EQ(history_.Lines("write", {"key"}), (std::vector<Json>{{{"key", "3"}}}));
  std::filesystem::remove_all(kept);
  EXPECT_EQ(Decided().exit_code, 2);
}

TEST_F(RecorderTest, AFullFileSaysSo) {
  MemoryStore posts = Posts(Versions::kPosition);
  MemoryClient client = posts.Client("a");
  SettingWords words;
  words.records_max_mib = 1;  // four of them
  ASSERT_TRUE(Configure(words).ok());
  const std::string key(1000, 'k');
  {
    const Scope scope;
    for (int time = 0; time < 5000; ++time) {
      EXPECT_TRUE(client.Set(key + std::to_string(time), "x").ok());
      if (time % 1000 == 0) {
        EXPECT_TRUE(FlushHistory(30s));
      }
    }
  }
  const std::vector<Json> lines = history_.Lines();
  EXPECT_EQ(lines.back().at("kind"), "gap");
  EXPECT_EQ(lines.back().at("reason").get<std::string>().rfind("full", 0), 0U);
  EXPECT_EQ(Decided().exit_code, 2);
}

TEST_F(RecorderTest, AnErrorOfTheRecorderIsAGap) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  SetTelemetrySink(std::make_shared<Spans>(std::nullopt));
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
    EXPECT_EQ(client.Get("1").value, "x");
    EXPECT_NE(Left(), "");
  }
  SetTelemetrySink(nullptr);
  const Json gap{{"reason", "an operation could not be recorded"}, {"count", 1}};
  EXPECT_EQ(history_.Lines("gap", {"reason", "count"}), (std::vector<Json>{gap, gap, gap}));
}

TEST_F(RecorderTest, AProcessThatWasKilledHasNoEnd) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
  }
  EXPECT_TRUE(FlushHistory(10s));
  EXPECT_EQ(history_.Written().back().at("kind"), "write");
  const auto [code, said] =
      History::Said(std::string(ANTIPODE_COMMAND) + " check --history " + history_.folder().string());
  EXPECT_EQ(code, 2) << said;
}

// The child ends as a process does, and what it inherited stays the parent's.
TEST_F(RecorderTest, TheChildOfAForkHasAFileOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that begin in a forked child";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "AddressSanitizer (GCC 12) forks while other threads hold its allocator's locks: the child waits for them";
#endif
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  const auto half_done = std::make_unique<Writing>(TheStore(), "3");
  {
    const Scope scope;
    EXPECT_TRUE(client.Set("1", "x").ok());
  }
  const pid_t child = fork();
  if (child == 0) {
    half_done->OutcomeUnknown();
    {
      const Scope scope;
      if (!client.Set("2", "x").ok()) _exit(1);
    }
    Shutdown();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  half_done->Abandon();
  std::vector<std::string> keys;
  for (const Json& line : history_.Lines("write", {"key"})) keys.push_back(line.at("key"));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"1", "2"}));
  std::vector<std::string> processes;
  for (const Json& line : history_.Written()) processes.push_back(line.at("process"));
  EXPECT_EQ(std::set<std::string>(processes.begin(), processes.end()).size(), 2U);
  EXPECT_EQ(Decided().exit_code, 0);
}

TEST_F(RecorderTest, AStoreWhoseReadsAreNotRecordedIsAGap) {
  const auto fake = JoinStore(ShimType::Of<FakeShim>("fake"), StoreOptions("rows")).value();
  {
    const Scope scope;
    for (int time = 0; time < 2; ++time) Writing(fake, "1").Abandon();
  }
  MemoryStore posts = Posts();
  posts.Client("a", StoreOptions("posts").InMode(Mode::kOff));
  std::vector<std::string> reasons;
  for (const Json& line : history_.Lines("gap", {"reason"})) reasons.push_back(line.at("reason"));
  EXPECT_EQ(reasons, (std::vector<std::string>{"reads of rows are not recorded (fake)",
                                               "reads of posts are not recorded (its mode is off)"}));
}

// HIST-31: its reads would be missing, and nothing would say so.
TEST_F(RecorderTest, AStoreThatIsOffForAWhileIsAGap) {
  MemoryStore posts = Posts();
  MemoryClient client = posts.Client("a");
  const Scope scope;
  ASSERT_TRUE(client.Set("1", "x").ok());
  SettingWords words;
  for (const Mode mode : {Mode::kOff, Mode::kEnforce}) {
    words.mode = mode;
    ASSERT_TRUE(Configure(words).ok());
    EXPECT_TRUE(client.Get("1").ok());
  }
  EXPECT_EQ(history_.Lines("gap", {"reason"}),
            (std::vector<Json>{{{"reason", "reads of posts are not recorded (its mode is off)"}}}));
}

// Also of a store that was wrapped before the recording began (HIST-31).
TEST_F(RecorderTest, AStoreThatWasThereBeforeIsAGapToo) {
  History::Record("");
  const auto fake = JoinStore(ShimType::Of<FakeShim>("fake"), StoreOptions("rows")).value();
  History::Record(history_.folder().string());
  { const Scope scope(Lineage().MarkedIncomplete()); }
  EXPECT_EQ(history_.Lines("gap", {"reason"}),
            (std::vector<Json>{{{"reason", "reads of rows are not recorded (fake)"}}}));
}

}  // namespace
}  // namespace antipode::testing
