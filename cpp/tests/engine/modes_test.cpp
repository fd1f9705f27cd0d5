// Dry-run, off, the records they leave, and what is counted (spec BAR-48, BAR-49, REC, OBS).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "antipode/carrier.h"
#include "antipode/memory.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/shim/shim_tools.h"
#include "antipode/shim/write.h"
#include "antipode/telemetry.h"
#include "base/json.h"
#include "base/observers.h"
#include "diagnostics/announcement.h"
#include "diagnostics/following.h"
#include "diagnostics/record_writer.h"
#include "engine/fakes.h"
#include "engine/records_test.h"
#include "environment.h"

namespace antipode::testing {
namespace {

class ModesTest : public RecordsTest {
 protected:
  ModesTest() { Be(Mode::kEnforce); }
};

// BAR-48, REC-4, REC-5, REC-7, REC-8.
TEST_F(ModesTest, DryRunWaitsForNothingAndRecordsHowLongItWouldHaveBeen) {
  Be(Mode::kDryRun);
  MemoryStore store("blog-posts", {"a", "b"}, 300ms);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  const Scope scope;
  ASSERT_TRUE(writer.Set("the-private-key", "v").ok());
  const BarrierResult result = Barrier(BarrierOptions().Timeout(20s));
  EXPECT_EQ(reader.Get("the-private-key").value, std::nullopt);
  EXPECT_TRUE(result.dry_run() && result.satisfied() && !result.complete());
  EXPECT_EQ(result.error(), nullptr);
  EXPECT_EQ(result.store("blog-posts").verdict, Verdict::kNotYet);
  EXPECT_EQ(result.ToString().find("dry run, nothing was waited for: blog-posts not yet: "), 0U) << result.ToString();
  const Json record = Written("barrier").front();
  EXPECT_EQ(record.at("satisfied"), false);
  EXPECT_EQ(record.at("reach"), "region");
  EXPECT_EQ(record.at("origin").at("scope"), "root");
  const Json seen = record.at("stores").at(0);
  EXPECT_EQ(seen.at("verdict"), "not_yet");
  EXPECT_EQ(seen.at("store_kind"), "memory");
  EXPECT_GT(seen.at("visible_after").get<double>(), 0.1);
  EXPECT_EQ(record.dump().find("the-private-key"), std::string::npos);
}

// REC-5: given up, not seen.
TEST_F(ModesTest, WhatIsNeverSeenIsRecordedSo) {
  Be(Mode::kDryRun);
  following::SetFollowFor(100ms);
  MakeFakeStore("s", {MakeFake("s1", Always(Visibility::NotYet()))});
  EXPECT_TRUE(Barrier(Lineage(Object("s", "k"))).satisfied());
  EXPECT_TRUE(Written("barrier").front().at("stores").at(0).at("visible_after").is_null());
  following::SetFollowFor(30s);
}

TEST_F(ModesTest, DryRunRecordsWhatWasThereAsVisibleAndAVacuousBarrier) {
  Be(Mode::kDryRun);
  MakeFakeStore("s", {MakeFake("s1", Always(Visibility::Visible()))});
  EXPECT_TRUE(Barrier(Lineage(Object("s", "k"))).satisfied());
  EXPECT_EQ(Written("barrier").front().at("satisfied"), true);
  EXPECT_TRUE(Barrier(Lineage(At("elsewhere", "e", 1))).vacuous());
  const Json vacuous = Written("vacuous").front();
  EXPECT_EQ(vacuous.at("lineage_stores"), Json({"elsewhere"}));
  EXPECT_EQ(vacuous.at("registered"), Json({"s"}));
}

// BAR-49.
TEST_F(ModesTest, DryRunOfOneSite) {
  MakeFakeStore("s", {MakeFake("s1", Always(Visibility::NotYet()))});
  const Lineage lineage(Object("s", "k"));
  EXPECT_TRUE(Barrier(lineage, BarrierOptions().DryRun()).dry_run());
  EXPECT_EQ(Barrier(lineage, BarrierOptions().Timeout(50ms)).error()->code, ErrorCode::kTimedOut);
}

// BAR-48: mistakes of the programmer are still refused.
TEST_F(ModesTest, DryRunStillRefusesMistakes) {
  Be(Mode::kDryRun);
  EXPECT_EQ(Barrier().error()->code, ErrorCode::kConfiguration);
}

// SCOPE-18, SCOPE-9.
TEST_F(ModesTest, FindingsBesideBarriersAreRecorded) {
  Be(Mode::kDryRun);
  const auto store = MakeFakeStore("posts", {MakeFake("s1", Always(Visibility::Visible()))});
  {
    const Scope scope;
    Writing write(store, "k");
    EXPECT_TRUE(Serialize().ok());
    write.Abandon();
    EXPECT_TRUE(scope->pending().empty());
  }
  const Json published = Written("published_before_commit").front();
  EXPECT_EQ(published.at("store"), "posts");
  EXPECT_EQ(published.at("written_at").get<std::string>().find("engine/modes_test.cpp:"), 0U);
  Append(Object("posts", "k"));
  EXPECT_EQ(Written("orphan").front().at("store"), "posts");
}

// REC-2: a failure to write is counted, and never reaches the application.
TEST_F(ModesTest, AFolderThatCannotBeWrittenNeverReachesTheApplication) {
  Be(Mode::kDryRun);
  std::filesystem::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file where a folder should be";
  MakeFakeStore("s", {MakeFake("s1", Always(Visibility::Visible()))});
  const auto before = RecordWriter::Instance().dropped();
  EXPECT_TRUE(Barrier(Lineage(Object("s", "k"))).satisfied());
  Until([&] { return RecordWriter::Instance().dropped() > before; });
}

TEST(JsonText, IsAlwaysUtf8) {
  EXPECT_EQ(JsonText("a\"\\\n\x01 né"), "\"a\\\"\\\\\\u000a\\u0001 né\"");
  for (const std::string text : {"\xFF", "\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\xAF"}) {
    EXPECT_NO_THROW(Json::parse(JsonText(text))) << JsonText(text);
  }
}

// BAR-48.
TEST_F(ModesTest, OffPassesEverythingThroughAndRefusesNothing) {
  Be(Mode::kOff);
  EXPECT_TRUE(Barrier().satisfied()) << "no scope and no store, and still no error in an emergency";
  MemoryStore store("s", {"a", "b"}, 30s);
  MemoryClient writer = store.Client("a");
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_EQ(Serialize().value(), "1");
  const BarrierResult result = Barrier();
  EXPECT_TRUE(result.satisfied() && !result.complete() && result.error() == nullptr);
  EXPECT_EQ(result.ToString(), "switched off (mode=off): nothing was looked at or waited for");
}

// BAR-49: it was not judged, so the result says so; also by the free path.
TEST_F(ModesTest, AStoreThatIsOffIsNamed) {
  MakeFakeStore("off", {MakeFake("t1", Always(Visibility::NotYet()))}, Mode::kOff);
  MakeFakeStore("kept", {MakeFake("k1", Always(Visibility::Visible()))});
  const Scope scope(Lineage(std::vector<WriteId>{At("off", "e", 1), At("kept", "e", 1)}));
  for (int turn = 0; turn < 2; ++turn) {
    const BarrierResult result = Barrier(Proceeding(20s));
    EXPECT_TRUE(result.satisfied() && !result.complete());
    EXPECT_NE(result.ToString().find("kept visible; off switched off (its mode), not looked at"), std::string::npos);
  }
}

// BAR-49.
TEST_F(ModesTest, OneStoreInDryRunIsRecordedAndNotWaitedFor) {
  following::SetFollowFor(50ms);
  MakeFakeStore("tried", {MakeFake("t1", Always(Visibility::NotYet()))}, Mode::kDryRun);
  MakeFakeStore("kept", {MakeFake("k1", Always(Visibility::Visible()))});
  const BarrierResult result =
      Barrier(Lineage(std::vector<WriteId>{Object("tried", "k"), Object("kept", "k")}), BarrierOptions().Timeout(20s));
  EXPECT_TRUE(result.satisfied() && !result.complete());
  EXPECT_EQ(result.store("tried").verdict, Verdict::kNotYet);
  EXPECT_EQ(Written("barrier").front().at("stores").at(0).at("store"), "tried");
  following::SetFollowFor(30s);
}

// OBS-1 to OBS-6, OBS-10: what a sink gets, and what is counted without one.
class Collecting : public TelemetrySink {
 public:
  void Add(const Instrument& instrument, const Attributes& attributes, std::uint64_t) override {
    Saw(instrument, attributes);
  }
  void Record(const Instrument& instrument, const Attributes& attributes, double) override {
    Saw(instrument, attributes);
  }
  void Waited(const BarrierSpan& barrier) override {
    const std::lock_guard<std::mutex> lock(mutex);
    spans.push_back(barrier);
  }
  std::optional<SpanName> CurrentSpan() override { return SpanName{std::string(32, 'a'), std::string(16, 'b')}; }
  void Finding(const EventAttributes& about) override {
    const std::lock_guard<std::mutex> lock(mutex);
    events.push_back(about);
  }

  std::mutex mutex;
  std::vector<BarrierSpan> spans;
  std::vector<EventAttributes> events;
  std::set<std::string> names;

 private:
  void Saw(const Instrument& instrument, const Attributes& attributes) {
    const std::lock_guard<std::mutex> lock(mutex);
    names.emplace(instrument.name);
    for (const auto& [name, value] : attributes) {
      EXPECT_EQ(name.find("antipode."), 0U) << name;
      EXPECT_EQ(value.find("the-private-key"), std::string::npos);
    }
  }
};

std::int64_t CountOf(const std::string& name, const std::string& attribute, const std::string& value) {
  std::int64_t count = 0;
  for (const Measurement& each : Measurements()) {
    const auto found = each.attributes.find(attribute);
    if (each.name == name && found != each.attributes.end() && found->second == value) count += each.count;
  }
  return count;
}

TEST_F(ModesTest, ABarrierThatWaitedIsASpanWithAChildAStoreAndIsMeasured) {
  const auto sink = std::make_shared<Collecting>();
  SetTelemetrySink(sink);
  MemoryStore store("blog-posts", {"a", "b"}, 50ms);
  MemoryClient writer = store.Client("a");
  static_cast<void>(store.Client("b"));
  const auto before = CountedBarriers(BarrierOutcome::kSatisfied);
  {
    const Scope scope;
    ASSERT_TRUE(writer.Set("the-private-key", "v").ok());
    EXPECT_TRUE(Barrier(BarrierOptions().Timeout(20s)).satisfied());
    EXPECT_TRUE(Barrier(BarrierOptions().Timeout(20s)).satisfied());  // free: no span, no instrument (OBS-9)
  }
  SetTelemetrySink(nullptr);
  ASSERT_EQ(sink->spans.size(), 1U);
  const BarrierSpan& span = sink->spans.front();
  EXPECT_EQ(span.outcome, "satisfied");
  EXPECT_EQ(span.region, "b");
  EXPECT_EQ(span.site.find("engine/modes_test.cpp:"), 0U);
  ASSERT_EQ(span.waits.size(), 1U);
  EXPECT_EQ(span.waits.front().store, "blog-posts");
  EXPECT_GT(span.waits.front().duration, 20ms);
  for (const char* name : {"antipode.barrier.duration", "antipode.wait.duration", "antipode.replica.lag",
                           "antipode.wait.requests"}) {
    EXPECT_EQ(sink->names.count(name), 1U) << name;
  }
  EXPECT_EQ(CountedBarriers(BarrierOutcome::kSatisfied), before + 1);
  EXPECT_EQ(CountOf("antipode.barrier.duration", "antipode.outcome", "satisfied"), 1);
  EXPECT_EQ(CountOf("antipode.wait.duration", "antipode.store.kind", "memory"), 1);
  EXPECT_GE(CountOf("antipode.wait.requests", "antipode.store", "blog-posts"), 1);
}

// REC-9, OBS-11: with what is known by then, under the records' own names, and what is empty is left out.
TEST_F(ModesTest, ARecordNamesTheSpanAndIsAnEventOfIt) {
  const auto sink = std::make_shared<Collecting>();
  SetTelemetrySink(sink);
  Be(Mode::kDryRun);
  MakeFakeStore("posts", {MakeFake("s1", Always(Visibility::Visible()))});
  Append(Object("posts", "k"));
  EXPECT_TRUE(Barrier(Lineage(At("elsewhere", "e", 1))).vacuous());
  SetTelemetrySink(nullptr);
  const Json record = Written("orphan").front();
  EXPECT_EQ(record.at("trace_id"), std::string(32, 'a'));
  EXPECT_EQ(record.at("span_id"), std::string(16, 'b'));
  ASSERT_EQ(sink->events.size(), 3U);
  const auto text = [&](std::size_t place, const std::string& name) {
    const EventAttributes& event = sink->events[place];
    const auto found = event.find("antipode." + name);
    return found == event.end() ? std::string() : std::get<std::string>(found->second);
  };
  EXPECT_EQ(text(0, "kind"), "orphan");
  EXPECT_EQ(text(0, "store"), "posts");
  EXPECT_EQ(text(0, "site"), record.at("site"));
  EXPECT_EQ(text(0, "process"), record.at("process"));
  EXPECT_EQ(text(0, "region"), "b");
  EXPECT_EQ(sink->events[0].size(), 5U);
  EXPECT_EQ(text(1, "kind"), "vacuous");
  EXPECT_EQ(text(1, "origin.scope"), "task");
  EXPECT_EQ(std::get<std::vector<std::string>>(sink->events[1].at("antipode.lineage_stores")),
            std::vector<std::string>{"elsewhere"});
  EXPECT_EQ(text(2, "kind"), "barrier");
  EXPECT_EQ(text(2, "reach"), "region");
}

// EPOCH-26.
TEST_F(ModesTest, StoresThatMayNotBeMarkedAreAGauge) {
  NoteMarks("blog-posts", "rights");
  EXPECT_EQ(CountOf("antipode.marks.missing", "antipode.store", "blog-posts"), 1);
  NoteMarks("blog-posts", "");
  EXPECT_EQ(CountOf("antipode.marks.missing", "antipode.store", "blog-posts"), 0);
}

// OBS-8.
TEST_F(ModesTest, WhatIsInForceIsSaidOnce) {
  const Isolation listening;
  ResetAnnouncement();
  SettingWords words;
  words.region = "b";
  Set(words);
  MemoryStore store("blog-posts", {"a", "b"});
  static_cast<void>(store.Client("a"));
  static_cast<void>(store.Client("b"));
  const Scope scope;
  EXPECT_TRUE(Barrier().satisfied());
  EXPECT_TRUE(Barrier(Lineage()).satisfied());
  std::vector<std::string> said;
  for (const std::string& line : listening.lines()) {
    if (line.find("mode=") != std::string::npos) said.push_back(line);
  }
  EXPECT_EQ(said, std::vector<std::string>{
                      "INFO mode=enforce region=b stores=blog-posts(memory, 2 replicas) trust=private"});
}

// OBS-8: also in a service that only passes lineages on.
TEST_F(ModesTest, WhatIsInForceIsSaidAtTheFirstRequest) {
  const Isolation listening;
  ResetAnnouncement();
  const std::map<std::string, std::string> headers;
  for (int turn = 0; turn < 2; ++turn) const Scope scope = ExtractRequest(HeaderCarrier(headers));
  std::size_t said = 0;
  for (const std::string& line : listening.lines()) said += line.find("mode=enforce") != std::string::npos ? 1 : 0;
  EXPECT_EQ(said, 1U);
}

constexpr const char* kBranchId = "0123456789abcdef0123456789abcdef";

std::string OpenBranch(std::chrono::seconds from_now) {
  const auto lease = std::chrono::system_clock::now() + from_now;
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(lease.time_since_epoch()).count();
  return std::string("antipode-branches.orders_2F") + kBranchId + ".." + std::to_string(count);
}

Lineage Told(const std::string& text) { return *Lineage::Deserialize(text); }

BarrierOptions GoesOn() { return BarrierOptions().OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed); }

// BRANCH-17, BRANCH-18: C++ looks up no branch; also where its store is not named, and the writes are visible.
TEST_F(ModesTest, AnOpenBranchIsNamedAndNeverPassed) {
  MemoryStore posts("posts", {"a"});
  MemoryClient client = posts.Client("a");
  Scope scope;
  ASSERT_TRUE(client.Set("k", "v").ok());
  EXPECT_TRUE(Barrier().complete());
  scope->Merge(Told("1~" + OpenBranch(30s)));
  for (const BarrierOptions& options : {GoesOn(), GoesOn().Stores({"posts"})}) {
    const BarrierResult result = Barrier(options);
    EXPECT_FALSE(result.satisfied());
    EXPECT_FALSE(result.vacuous());
    EXPECT_EQ(result.store("antipode-branches").verdict, Verdict::kUnproven);
    EXPECT_NE(result.store("antipode-branches").reason.find("their tasks may have writes to make"), std::string::npos);
    EXPECT_EQ(result.store("posts").verdict, Verdict::kVisible);
  }
  const BarrierResult result = Barrier();
  ASSERT_NE(result.error(), nullptr);
  EXPECT_EQ(result.error()->code, ErrorCode::kUnproven);
}

// BRANCH-16, BRANCH-19.
TEST_F(ModesTest, BranchesThatNobodyKnowsAnyMoreAreIncomplete) {
  MemoryStore posts("posts", {"a"});
  MemoryClient client = posts.Client("a");
  const BarrierResult old = Barrier(Told("1~" + OpenBranch(-25h)), GoesOn());
  EXPECT_TRUE(old.satisfied());
  EXPECT_FALSE(old.complete());
  ASSERT_EQ(old.gaps().size(), 1U);
  EXPECT_EQ(old.gaps().front().reason, "branch");
  EXPECT_FALSE(Barrier(Told("1~_.i.antipode-branches"), GoesOn().Stores({"posts"})).complete());
}

// BRANCH-8: nobody downstream takes itself for the task.
TEST_F(ModesTest, TheExtensionsOfATasksTextGoNoFurther) {
  const std::string task = std::string("1~_.task.orders.") + kBranchId + ".5";
  Scope scope(Told(task + "~_.x"));
  scope->Receive(Told(std::string("1~_.within.orders.") + kBranchId + ".5"));
  scope->Transfer(Told(task));
  EXPECT_EQ(scope->lineage().Serialize(), "1~_.x");
  EXPECT_TRUE(scope->Additions().empty());
}

// BRANCH-21: dry-run does not wait, and says what it did not wait for.
TEST_F(ModesTest, DryRunRecordsThatABranchWasOpen) {
  MemoryStore posts("posts", {"a"});
  MemoryClient client = posts.Client("a");
  Be(Mode::kDryRun);
  const BarrierResult result = Barrier(Told("1~" + OpenBranch(30s)));
  EXPECT_TRUE(result.satisfied());
  EXPECT_FALSE(result.complete());
  const std::vector<Json> records = Written("barrier");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records.front().at("satisfied"), false);
  EXPECT_EQ(records.front().at("stores").at(0).at("store"), "antipode-branches");
}

}  // namespace
}  // namespace antipode::testing
