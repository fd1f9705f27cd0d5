// What could be a record a request: one at once, then one a minute with how many there were (spec REC-17, REC-18).
#include <thread>

#include "antipode/carry.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/response_stream.h"
#include "antipode/scope.h"
#include "antipode/shim/write.h"
#include "antipode/telemetry.h"
#include "diagnostics/held_records.h"
#include "engine/records_test.h"

namespace antipode::testing {
namespace {

const std::string kHere = "engine/often_recorded_test.cpp:";

class OftenRecordedTest : public RecordsTest {
 protected:
  OftenRecordedTest() {
    Be(Mode::kDryRun);
    store_ = MakeFakeStore("posts", {MakeFake("p", Always(Visibility::Visible()))});
  }
  ~OftenRecordedTest() override { SetTelemetrySink(nullptr); }

  void Write(const ScopePtr& scope) const {
    const Activation active(scope);
    Writing(store_, "k").Record(Ordered{"", 1});
  }

  static bool IsHere(const Json& record, const std::string& name = "site") {
    return record.at(name).get<std::string>().find(kHere) == 0;
  }

  std::shared_ptr<Store> store_;
};

// REC-17: at the end of the process what was held back is written, too.
TEST_F(OftenRecordedTest, AWriteOfAScopeThatHasEnded) {
  ScopePtr ended;
  {
    const Scope scope;
    ended = CurrentScope();
  }
  for (int write = 0; write < 5; ++write) Write(ended);
  const std::vector<Json> found = Written("late_write");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at("store"), "posts");
  EXPECT_EQ(found[0].at("reason"), "closed");
  EXPECT_FALSE(found[0].contains("count"));
  EXPECT_TRUE(IsHere(found[0]));
  records::End();
  const std::vector<Json> all = Now("late_write");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].at("count"), 4);
}

// REC-17, PROP-16.
TEST_F(OftenRecordedTest, AWriteAfterTheHeaderHasLeft) {
  const std::map<std::string, std::string> headers;
  Scope scope = ExtractRequest(HeaderCarrier(headers));
  std::map<std::string, std::string> answer;
  scope.InjectResponse(HeaderCarrier(answer));
  Write(CurrentScope());
  EXPECT_EQ(Written("late_write").front().at("reason"), "sent");
}

// REC-17, SCOPE-18.
TEST_F(OftenRecordedTest, AWriteInFlightOfAnotherThreadIsNoViolation) {
  const Scope scope;
  std::unique_ptr<Writing> write;
  std::thread other(Carry([&] { write.reset(new Writing(store_, "k")); }));
  other.join();
  EXPECT_TRUE(Serialize().ok());
  write->Abandon();
  const Json record = Written("concurrent_write").front();
  EXPECT_EQ(record.at("store"), "posts");
  EXPECT_TRUE(IsHere(record));
  EXPECT_TRUE(IsHere(record, "written_at"));
  EXPECT_TRUE(Now("published_before_commit").empty());
}

// REC-17.
TEST_F(OftenRecordedTest, ALineageThatBecomesIncompleteHereOrCameInSo) {
  {
    const Scope scope;
    scope->MarkIncomplete("rights", {"posts"});
  }
  { const Scope scope = MessageScope(Lineage(At("posts", "e", 1)).MarkedIncomplete({"posts"}).Serialize()); }
  { const Scope scope = MessageScope("what is no lineage"); }
  Until([&] { return Now("incomplete").size() >= 3; });
  const std::vector<Json> found = Now("incomplete");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].at("reason"), "rights");
  EXPECT_EQ(found[0].at("store"), "posts");
  EXPECT_EQ(found[0].at("origin").at("scope"), "root");
  EXPECT_TRUE(IsHere(found[0]));
  EXPECT_EQ(found[1].at("reason"), "received");
  EXPECT_EQ(found[1].at("store"), "posts");
  EXPECT_EQ(found[1].at("origin").at("scope"), "message");
  EXPECT_EQ(found[2].at("reason"), "malformed");
}

// REC-17, PROP-27: with the place where the application said so.
TEST_F(OftenRecordedTest, ACallThatBroughtNoAnswer) {
  const Scope scope;
  Unanswered("post-storage:9090", "deadline exceeded");
  const Json record = Written("incomplete").front();
  EXPECT_EQ(record.at("reason"), "unanswered");
  EXPECT_TRUE(IsHere(record));
}

// REC-17.
TEST_F(OftenRecordedTest, EachKeyIsWrittenOnceAMinuteWithItsNumber) {
  HeldRecords held;
  const TimePoint began = Clock::now();
  const auto record = [](int number) { return Record("orphan").Integer("n", number); };
  const auto due = [&](Duration after, bool all = false) {
    std::vector<std::string> texts;
    for (const Record& each : held.Due(began + after, all)) {
      const Json json = Json::parse(each.Written());
      texts.push_back(std::to_string(json.at("n").get<int>()) + " x" + std::to_string(json.at("count").get<int>()));
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_TRUE(held.Admit("a", record(0), began));
  for (int number = 1; number < 4; ++number) EXPECT_FALSE(held.Admit("a", record(number), began));
  EXPECT_TRUE(held.Admit("b", record(0), began));
  EXPECT_EQ(due(0s), Texts());
  EXPECT_EQ(due(60s), Texts{"3 x3"});
  EXPECT_FALSE(held.Admit("a", record(4), began + 60s));
  EXPECT_EQ(due(120s), Texts{"4 x1"});
  EXPECT_EQ(due(180s), Texts());
  EXPECT_TRUE(held.Admit("a", record(5), began + 180s));
}

// REC-17: bounded, and still counted.
TEST_F(OftenRecordedTest, SoManyDifferentOnesStandTogether) {
  HeldRecords held;
  int written = 0;
  for (int number = 0; number < 1500; ++number) {
    written += held.Admit(std::to_string(number), Record("orphan"), Clock::now()) ? 1 : 0;
  }
  EXPECT_EQ(written, 1000);
  const std::vector<Record> due = held.Due(Clock::now(), true);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(Json::parse(due.front().Written()).at("count"), 500);
}

// REC-18: once a scope and site, where a barrier would have come before what the callee reads.
TEST_F(OftenRecordedTest, ALineageThatCameWithAMessageLeavesWithACall) {
  const std::string text = Lineage(At("posts", "e", 1)).Serialize();
  const auto call = [] {
    std::map<std::string, std::string> headers;
    EXPECT_EQ(InjectRequest(HeaderCarrier(headers), "post-storage.local"), std::nullopt);
  };
  MessageOptions message;
  message.queue = "notifications";
  SetTelemetrySink(std::make_shared<Traced>());
  {
    const Scope scope = MessageScope(text, message);
    call();
    call();
  }
  const Json record = Written("passed_on").front();
  {
    const Scope scope(Lineage(At("posts", "e", 1)));  // it has brought nothing
    call();
  }
  {
    const std::map<std::string, std::string> headers;
    const Scope scope = ExtractRequest(HeaderCarrier(headers));
    call();
  }
  SetTelemetrySink(nullptr);
  {
    const Scope scope = MessageScope(text, message);  // in no trace
    call();
  }
  SettingWords words = Words(Mode::kDryRun);
  words.sample = 0.0;
  Set(words);
  SetTelemetrySink(std::make_shared<Traced>());
  {
    const Scope scope = MessageScope(text, message);
    call();
  }
  EXPECT_EQ(Now("passed_on").size(), 1U);
  EXPECT_TRUE(IsHere(record));
  EXPECT_EQ(record.at("target"), "post-storage.local");
  EXPECT_EQ(record.at("origin").at("scope"), "message");
  EXPECT_EQ(record.at("origin").at("store"), "notifications");
  EXPECT_EQ(record.at("trace_id"), std::string(32, 'a'));
}

}  // namespace
}  // namespace antipode::testing
