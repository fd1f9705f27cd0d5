// Names of epochs and places in the log, and what one look at a server proves (spec EPOCH-6, EPOCH-8, EPOCH-28,
// EPOCH-29).
#include "positions.h"

#include <gtest/gtest.h>

#include "judging.h"
#include "packets.h"
#include "targets.h"

namespace antipode::postgresql {
namespace {

TEST(Positions, NamesOfEpochsAreThoseThatPythonWrites) {
  const Epoch epoch{7301234567890123456U, 2, "8fcbaf"};
  const auto again = EpochOf(epoch.Name());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->system, epoch.system);
  EXPECT_EQ(again->timeline, 2U);
  EXPECT_EQ(again->word, "8fcbaf");
  EXPECT_EQ((Epoch{35, 1, ""}.Name()), "z-1");
  EXPECT_EQ((Epoch{36, 1, "a"}.Name()), "10-1-a");
  EXPECT_EQ((Epoch{0, 1, ""}.Name()), "0-1");
  for (const char* name :
       {"", "z", "z-", "-1", "Z-1", "z-1-", "z-1-abcdefgh", "z-1-a-b", "z-x", "zzzzzzzzzzzzz-1", "z-99999999999"}) {
    EXPECT_FALSE(EpochOf(name)) << name;
  }
}

TEST(Positions, PlacesInTheLog) {
  EXPECT_EQ(NumberOf("1/2A"), 0x10000002AU);
  EXPECT_EQ(LsnOf(0x10000002AU), "1/2A");
  EXPECT_EQ(NumberOf("FFFFFFFF/FFFFFFFF"), ~std::uint64_t{0});
  for (const char* text : {"", "1", "1/", "/1", "g/1", "1/2/3", "123456789/1"}) EXPECT_FALSE(NumberOf(text)) << text;
}

// A position at the beginning of a page may be in the middle of a record (EPOCH-3).
TEST(Positions, ThePagesHeaderIsNoEndOfARecord) {
  constexpr std::uint64_t kSegment = 16 << 20;
  EXPECT_EQ(RecordEnd(8192 + 24, kSegment), 8192U);
  EXPECT_EQ(RecordEnd(kSegment + 40, kSegment), kSegment);
  EXPECT_EQ(RecordEnd(8192 + 25, kSegment), 8192U + 25);
  EXPECT_TRUE((Place{1, 8192, 8192 + 24}.Certain(kSegment)));
  EXPECT_FALSE((Place{1, 8192, 8192 + 100}.Certain(kSegment)));
  EXPECT_TRUE((Place{1, 8200, 9000}.Certain(kSegment)));
}

class Judging : public ::testing::Test {
 protected:
  // On timeline 3, which came from 2 at 200, which came from 1 at 100.
  ServerState seen_{5, true, 300, {History{3, {{1, 100}, {2, 200}}}}, {{{5, 1}, "one"}, {{5, 2}, "two"}, {{5, 3}, "three"}},
             {}, true, "", false};

  Visibility At(const std::string& word, std::uint32_t timeline, std::uint64_t position) const {
    return JudgeAt(Epoch{5, timeline, word}.Name(), position, seen_);
  }
};

TEST_F(Judging, PassesOnlyWithinTheHistory) {
  EXPECT_EQ(At("three", 3, 300).verdict, Verdict::kVisible);
  EXPECT_EQ(At("three", 3, 301).verdict, Verdict::kNotYet);
  EXPECT_EQ(At("two", 2, 200).verdict, Verdict::kVisible);
  EXPECT_EQ(At("two", 2, 201).verdict, Verdict::kUnproven);
  EXPECT_EQ(At("one", 1, 100).verdict, Verdict::kVisible);
  EXPECT_EQ(At("one", 1, 101).verdict, Verdict::kUnproven);
  EXPECT_EQ(At("four", 4, 1).verdict, Verdict::kNotYet);
  EXPECT_TRUE(At("four", 4, 1).unknown_epoch);
  EXPECT_TRUE(JudgeAt("6-1-one", 1, seen_).unknown_epoch);
  EXPECT_EQ(JudgeAt("nonsense", 1, seen_).verdict, Verdict::kUnproven);
}

TEST_F(Judging, TheWordTellsTimelinesOfOneNumberApart) {
  EXPECT_EQ(At("other", 2, 1).verdict, Verdict::kUnproven);
  EXPECT_EQ(At("", 2, 1).verdict, Verdict::kUnproven);
  EXPECT_EQ(At("", 1, 1).verdict, Verdict::kVisible) << "there is one timeline 1";
  seen_.words.erase({5, 3});
  EXPECT_EQ(At("three", 3, 300).verdict, Verdict::kUnproven);
  EXPECT_EQ(At("three", 3, 301).verdict, Verdict::kNotYet);
  EXPECT_EQ(At("", 3, 300).verdict, Verdict::kUnproven);
  seen_.words_fresh = false;
  EXPECT_EQ(At("three", 3, 300).verdict, Verdict::kNotYet);
  seen_.unique_timelines = true;
  EXPECT_EQ(At("", 3, 300).verdict, Verdict::kVisible);
}

TEST_F(Judging, WhatHoldsInEveryPossibleHistoryAlonePasses) {
  seen_.histories.push_back(History{4, {{1, 100}, {2, 150}}});
  EXPECT_EQ(At("two", 2, 150).verdict, Verdict::kVisible);
  EXPECT_EQ(At("two", 2, 151).verdict, Verdict::kNotYet);
  EXPECT_EQ(At("three", 3, 1).verdict, Verdict::kNotYet);
  EXPECT_EQ(seen_.Proved(), (Ends{{"5-1-one", 100}, {"5-2-two", 150}}));
  seen_.histories.clear();
  EXPECT_EQ(At("one", 1, 1).verdict, Verdict::kUnproven);
  EXPECT_TRUE(seen_.Proved().empty());
}

TEST_F(Judging, RowsOfAnotherSystemProveNothingUntilTheyAreSettled) {  // EPOCH-22
  seen_.words[{9, 1}] = "foreign";  // they came with a dump or a logical copy
  const std::string name = Epoch{9, 1, "foreign"}.Name();
  EXPECT_EQ(seen_.Proved().count(name), 0U);
  const Visibility answer = JudgeAt(name, 1, seen_);
  EXPECT_TRUE(answer.unknown_epoch);
  EXPECT_NE(answer.reason.find("another system"), std::string::npos) << answer.reason;
  seen_.settled[name] = 70;
  EXPECT_EQ(JudgeAt(name, 70, seen_).verdict, Verdict::kVisible);
  EXPECT_TRUE(JudgeAt(name, 71, seen_).unknown_epoch);
}

TEST_F(Judging, AnOperatorsWordSettlesAnEpoch) {  // EPOCH-24
  seen_.settled["5-9-nine"] = 70;
  EXPECT_EQ(At("nine", 9, 70).verdict, Verdict::kVisible);
  EXPECT_EQ(At("nine", 9, 71).verdict, Verdict::kNotYet);
  EXPECT_EQ(seen_.Proved().at("5-9-nine"), 70U);
  EXPECT_EQ(seen_.Proved().at("5-3-three"), 300U);
  EXPECT_EQ(seen_.EpochNow(), "5-3-three");
}

TEST(Judged, HistoryFilesAsTheServerWritesThem) {
  const History history = ParseHistory(3, "1\t0/64\tno recovery target specified\n\n2\t0/C8\tbefore\nnonsense\n");
  EXPECT_EQ(history.ends, (std::map<std::uint32_t, std::uint64_t>{{1, 100}, {2, 200}}));
  EXPECT_EQ(history.EndOf(3), ~std::uint64_t{0});
  EXPECT_FALSE(history.EndOf(4));
}

// EPOCH-28: the standby had timeline 2's history from an archive; as PostgreSQL 15 wrote its own.
TEST(Judged, AStandbyThatWasPromotedBeforeItCameToTheForkLacksWhatIsBeyondItsOwnEnd) {
  const History history = ParseHistory(3, "1\t0/33260C0\tno recovery target\n2\t0/3015FB0\tno recovery target\n");
  EXPECT_EQ(history.ends, (std::map<std::uint32_t, std::uint64_t>{{1, 0x3015FB0}, {2, 0x3015FB0}}));
}

TEST(Targets, AddressesHaveNoCredentials) {
  const auto target = TargetOf(std::string("postgresql://app:secret@b1:5433/blog?application_name=x"));
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->address, "postgresql://b1:5433/blog");
  EXPECT_EQ(target->words.at("password"), "secret");
  EXPECT_EQ(target->words.count("application_name"), 0U);
  EXPECT_EQ(TargetOf(std::string("host=/run/pg dbname=a"))->address, "postgresql://%2Frun%2Fpg:5432/a");
  EXPECT_EQ(TargetOf(std::string("host=::1 user=u"))->address, "postgresql://[::1]:5432/u");
  const auto wrong = TargetOf(std::string("postgresql://app:secret@b1:5433/blog?nonsense=1"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(wrong.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace antipode::postgresql
