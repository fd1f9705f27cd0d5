// Which reads dry-run follows, how many, and what its summaries count (spec REC).
#include <map>

#include "antipode/memory.h"
#include "antipode/messages.h"
#include "diagnostics/record_writer.h"
#include "engine/followed_reads_test.h"

namespace antipode::testing {
namespace {

const std::string kHere = "engine/sampled_reads_test.cpp:";

using SampledReadsTest = FollowedReadsTest;

// REC-12: the last 7 octets of its id, as a share of 2^56.
TEST_F(SampledReadsTest, TheTraceDecidesForEveryProcessAlike) {
  SettingWords words = Words(Mode::kDryRun);
  words.sample = 0.25;
  Set(words);
  const auto store = MakeFakeStore("posts", {MakeFake("p", Always(Visibility::Visible()))});
  const Scope scope(Lineage(At("posts", "e", 1)));
  const std::string first = "000000000000000abc";
  const std::map<std::string, bool> traces = {{first + "3fffffffffffff", true},
                                              {first + "40000000000000", false},
                                              {first + "ffffffffffffff", false},
                                              {first + "00000000000000", true}};
  for (const auto& [trace, sampled] : traces) {
    ASSERT_EQ(trace.size(), 32U);
    SetTelemetrySink(std::make_shared<Traced>(trace));
    EXPECT_EQ(Begin(store) != nullptr, sampled) << trace;
  }
}

// REC-10, REC-12.
TEST_F(SampledReadsTest, WithoutATraceChanceDecides) {
  SettingWords words = Words(Mode::kDryRun);
  words.sample = 0.25;
  Set(words);
  const auto store = MakeFakeStore("posts", {MakeFake("p", Always(Visibility::Visible()))});
  const Scope scope(Lineage(At("posts", "e", 1)));
  int followed = 0;
  for (int read = 0; read < 4000; ++read) followed += Begin(store) != nullptr ? 1 : 0;
  EXPECT_GT(followed, 800);
  EXPECT_LT(followed, 1200);
  EXPECT_EQ(Counted("reads"), 4000U);
  words.sample = 0.0;
  Set(words);
  EXPECT_EQ(Begin(store), nullptr);
}

// REC-15: what comes beyond is neither followed nor counted as followed.
TEST_F(SampledReadsTest, SoManyAreFollowedAndNoMore) {
  following::SetMostFollowed(3);
  following::SetFollowFor(200ms);
  const auto store = MakeFakeStore("posts", {MakeFake("p", Always(Visibility::NotYet()))});
  const Scope scope(Lineage(At("posts", "e", 1)));
  for (int read = 0; read < 5; ++read) {
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front());
  }
  EXPECT_EQ(Counted("followed_reads"), 3U);
  UntilNothingIsFollowed();
  following::SetMostFollowed(following::kMostFollowed);
  following::SetFollowFor(30s);
  const std::vector<Json> found = Now("behind");
  ASSERT_EQ(found.size(), 3U);
  for (const Json& record : found) EXPECT_TRUE(record.at("visible_after").is_null());
}

// REC-3: what is confirmed later is in the trace of the read.
TEST_F(SampledReadsTest, TheFindingIsInTheTraceOfTheRead) {
  MemoryStore store("posts", {"a", "b"}, 500ms);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  SetTelemetrySink(std::make_shared<Traced>(std::string(32, 'a')));
  EXPECT_TRUE(reader.Get("k").ok());
  SetTelemetrySink(nullptr);
  EXPECT_EQ(Finding().at("trace_id"), std::string(32, 'a'));
}

// REC-16.
TEST_F(SampledReadsTest, ASummaryCountsWhatWasSinceTheLast) {
  MemoryStore store("posts", {"a", "b"}, 500ms);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  for (int message = 0; message < 3; ++message) {
    const Scope scope = MessageScope("");
    ASSERT_TRUE(writer.Set("k", std::to_string(message)).ok());
    EXPECT_TRUE(reader.Get("k").ok());
    EXPECT_TRUE(Barrier().dry_run());
  }
  Until([] { return following::Followed() == 0 && Counted("behind") + Counted("stale") == 3; });
  records::End();
  EXPECT_TRUE(reader.Get("k").ok());
  records::End();
  records::End();  // nothing since
  const std::vector<Json> summaries = Now("summary");
  ASSERT_EQ(summaries.size(), 2U);
  std::map<std::string, int> totals;
  for (const Json& count : summaries[0].at("counts")) {
    const std::string what = count.at("what");
    totals[what] += count.at("count").get<int>();
    if (what == "barriers" || what == "followed_reads" || what == "behind" || what == "stale") {
      EXPECT_EQ(count.at("site").get<std::string>().find(kHere), 0U);
    }
    EXPECT_EQ(count.contains("store"), what != "barriers" && what != "messages");
  }
  EXPECT_EQ(totals["behind"] + totals["stale"], 3);
  totals.erase("behind");
  totals.erase("stale");
  EXPECT_EQ(totals, (std::map<std::string, int>{
                        {"messages", 3}, {"reads", 3}, {"followed_reads", 3}, {"barriers", 3}, {"writes", 3}}));
  EXPECT_EQ(summaries[1].at("since"), summaries[0].at("time"));
  EXPECT_EQ(summaries[0].at("sample"), 1.0);  // REC-19
  EXPECT_EQ(summaries[1].at("counts"), Json::parse(R"([{"what": "reads", "store": "posts", "count": 1}])"));
}

// REC-16: also of a process that finds nothing.
TEST_F(SampledReadsTest, ASummaryComesEveryMinute) {
  RecordWriter::Instance().End();
  SetDuePeriod(20ms);
  MemoryStore store("posts", {"a", "b"});
  EXPECT_TRUE(store.Client("b").Get("k").ok());
  EXPECT_EQ(Written("summary").front().at("counts").at(0).at("what"), "reads");
  RecordWriter::Instance().End();
  SetDuePeriod(60s);
}

}  // namespace
}  // namespace antipode::testing
