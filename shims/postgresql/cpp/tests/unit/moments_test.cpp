// What a text does with moments that are past, as far as it shows (SHIM-48).
#include "moments.h"

#include <gtest/gtest.h>

namespace antipode::postgresql {
namespace {

using Does = Past::Does;

WriteId At(std::uint64_t counter) { return *WriteId::Position("s", "e", counter); }

TEST(Moments, AreToldByTheText) {
  const std::vector<std::tuple<std::string, Does, std::string, bool>> cases{
      {"SELECT 1", Does::kNothing, "", false},
      {"SELECT * FROM posts FETCH FIRST 5 ROWS ONLY", Does::kNothing, "", false},
      {"SELECT 'declare'", Does::kNothing, "", false},
      {"FETCH c", Does::kFetches, "c", false},
      {"fetch forward 10 from C", Does::kFetches, "c", false},
      {"FETCH ALL IN \"C x\";", Does::kFetches, "C x", false},
      {"/* a */ FETCH NEXT c -- b", Does::kFetches, "c", false},
      {"SELECT 1; FETCH c", Does::kFetches, "", false},
      {"BEGIN; SET TRANSACTION SNAPSHOT '1'; SELECT 1", Does::kFetches, "", false},
      {"SELECT '\\'; FETCH c --'", Does::kFetches, "", false},
      {"DECLARE c CURSOR FOR SELECT 1", Does::kDeclares, "c", false},
      {"declare \"C\" NO SCROLL cursor WITH HOLD for SELECT hold FROM posts", Does::kDeclares, "C", true},
      {"DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1", Does::kDeclares, "c", false},
      {"DECLARE c CURSOR FOR SELECT hold FROM posts", Does::kDeclares, "c", false},
      {"BEGIN; DECLARE c CURSOR FOR SELECT 1", Does::kNothing, "", false},
      {"CLOSE c", Does::kCloses, "c", false},
      {"CLOSE ALL", Does::kCloses, "", false},
      {"MOVE 5 IN c", Does::kFetches, "c", false},
      {"DISCARD PLANS", Does::kTakes, "", false},
      {"FETCH U&\"\\0063\"", Does::kFetches, "", false},
      {"SET TRANSACTION SNAPSHOT '00000003-0000001B-1'", Does::kImports, "", false},
  };
  for (const auto& [text, does, cursor, holds] : cases) {
    const Past past = PastIn(text);
    EXPECT_EQ(past.does, does) << text;
    EXPECT_EQ(past.cursor, cursor) << text;
    EXPECT_EQ(past.holds, holds) << text;
  }
}

TEST(Moments, OfCursorsEndWithTheirTransactionButForThoseThatHold) {
  Moments moments;
  EXPECT_FALSE(moments.CursorShows("c", {At(1)}));
  moments.Sent(PastIn("DECLARE c CURSOR FOR SELECT 1"), true, {At(5)});
  moments.Sent(PastIn("DECLARE held CURSOR WITH HOLD FOR SELECT 1"), true, {At(7)});
  moments.Sent(PastIn("DECLARE c CURSOR FOR SELECT 2"), true, {At(9)});
  EXPECT_FALSE(moments.CursorShows("c", {At(9)})) << "it may not have been declared again";
  EXPECT_TRUE(moments.CursorShows("c", {At(5)}));
  EXPECT_FALSE(moments.CursorShows("c", {At(6)}));
  EXPECT_TRUE(moments.SnapshotShows({At(5)}));
  EXPECT_FALSE(moments.SnapshotShows({At(7)})) << "it was taken by the first one";
  moments.Over();
  EXPECT_FALSE(moments.has_snapshot());
  EXPECT_FALSE(moments.CursorShows("c", {At(5)}));
  EXPECT_TRUE(moments.CursorShows("held", {At(7)}));
  moments.Sent(PastIn("CLOSE ALL"), false, {});
  EXPECT_TRUE(moments.CursorShows("held", {At(7)})) << "nobody knows yet";
  moments.Done(PastIn("CLOSE ALL"), {});
  EXPECT_FALSE(moments.CursorShows("held", {At(7)}));
}

TEST(Moments, OfAnotherSessionsSnapshotAreNotKnown) {
  Moments moments;
  moments.Sent(PastIn("SET TRANSACTION SNAPSHOT '1'"), false, {At(5)});
  EXPECT_TRUE(moments.has_snapshot());
  EXPECT_FALSE(moments.SnapshotShows({At(1)}));
}

}  // namespace
}  // namespace antipode::postgresql
