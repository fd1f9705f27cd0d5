// Which statements dry-run may send once more, by their text (spec REC-23).
#include "repeatable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "statements.h"

namespace antipode::postgresql {
namespace {

nlohmann::json Cases() {
  std::ifstream file(ANTIPODE_REPEATABLE);
  const nlohmann::json all = nlohmann::json::parse(file);
  EXPECT_EQ(all.at("kind"), "repeatable-statements");
  nlohmann::json cases = nlohmann::json::array();
  for (const auto& each : all.at("cases")) {
    const auto& dialects = each.at("dialects");
    if (std::find(dialects.begin(), dialects.end(), "postgresql") != dialects.end()) cases.push_back(each);
  }
  EXPECT_GT(cases.size(), 100U);
  return cases;
}

// REC-23
TEST(Repeatable, IsWhatItIsInTheOtherLanguages) {
  for (const auto& each : Cases()) {
    EXPECT_EQ(nlohmann::json(IsRepeatable(each.at("statement").get<std::string>())), each.at("repeatable")) << each;
  }
}

// REC-14: nothing that may write.
TEST(Repeatable, IsNothingThatMayWrite) {
  for (const auto& each : Cases()) {
    const std::string text = each.at("statement");
    const Kind kind = Classify(text);
    EXPECT_TRUE(!IsRepeatable(text) || kind == Kind::kRead || IsUnsure(kind)) << each;
  }
}

// REC-23: what is a literal may depend on a setting.
TEST(Repeatable, IsNothingThatASettingDividesOtherwise) {
  EXPECT_FALSE(IsRepeatable(R"(SELECT * FROM posts WHERE text = 'a\'' OR b = 'c')"));
  EXPECT_TRUE(IsRepeatable(R"(SELECT * FROM posts WHERE text = 'a\b')"));
}

TEST(Repeatable, IsNothingThatIsCalledByAnEscapedName) {
  EXPECT_FALSE(IsRepeatable(R"(SELECT U&"\0070ublish"(id) FROM posts)"));
  EXPECT_FALSE(IsRepeatable("(SELECT * FROM posts)"));
  EXPECT_FALSE(IsRepeatable("SELECT * FROM posts; ;DELETE FROM posts"));
}

// REC-23: no number or parameter that letters follow at once.
TEST(Repeatable, IsNothingWhoseNumbersRunOn) {
  for (const char* number : {"1for", "1.for", "1.a", "1.5for", ".5for", "2e3for", "2e-3for", "$1for", "$1e3", "0xfor",
                             "1xf", "1e''", "1$a$ $a$", "1\xc3\xa4"}) {
    EXPECT_FALSE(IsRepeatable(std::string("SELECT ") + number + " FROM posts")) << number;
  }
  for (const char* number : {"1 a", "t1.a1", "t1 .e3", "\"1\"a", "'1'a", "a1", "$1 a", "0x1F", "2E3", "1/**/a",
                             "1--\na", "a[1]", "1.5e+3"}) {
    EXPECT_TRUE(IsRepeatable(std::string("SELECT ") + number + " FROM posts")) << number;
  }
}

// REC-23
TEST(Repeatable, IsNothingBehindAChangeOfTheSession) {
  for (const char* text : {"SET search_path = tenant", "SET SESSION AUTHORIZATION x", "SET transaction_read_only = on",
                           "SET", "set local role x", "BEGIN; SET LOCAL a.b = 'c'; COMMIT", "/* a */ SET TIME ZONE 'x'",
                           "SELECT set_config('search_path', 'tenant', false)", "CREATE TEMP TABLE posts (id int)",
                           "CREATE TEMPORARY TABLE posts AS SELECT 1", "CREATE TABLE pg_temp.posts (id int)",
                           "SELECT * INTO TEMP posts FROM drafts", "SELECT 'a\\'; SET role x; --'"}) {
    EXPECT_TRUE(ChangesSession(text)) << text;
  }
  for (const char* text : {"SET TRANSACTION READ ONLY", "BEGIN; SET CONSTRAINTS ALL DEFERRED",
                           "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "RESET ALL",
                           "ROLLBACK TO SAVEPOINT a", "UPDATE posts SET a = 1", "DISCARD ALL", "SELECT publish(1)",
                           "SELECT 'SET role x'", "UPDATE posts SET a = 1; UPDATE posts SET b = 2", ""}) {
    EXPECT_FALSE(ChangesSession(text)) << text;
  }
}

// However deep and long: no recursion, and no more work than the text is long.
TEST(Repeatable, OfLongStatements) {
  for (const char* part : {"(", "abs(", "a.", "'a' ", "\\", "/*", "$a$ ", "; ", "limit 1 ", "E'\\''"}) {
    std::string text = "SELECT * FROM posts ";
    for (int count = 0; count < 50'000; ++count) text += part;
    (void)IsRepeatable(text);
    (void)ChangesSession(text);
  }
}

// A statement in which a word stands that is forbidden is not repeated, whatever stands around it outside of literals.
RC_GTEST_PROP(Repeatable, NoTextHidesAWord, ()) {
  static const std::vector<std::string> kParts{"posts", "'a'", "\"for\"", "/* ' */", "-- \"\n",
                                               "$a$ ' $a$", "E'\\''", "''", "1", ",", "."};
  static const std::vector<std::string> kForbidden{"FOR", "nextval", "into", "pg_sleep", ";x",
                                                   "@",   "publish(", "x.count(", "\"a\"("};
  const auto parts = [] { return *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts)); };
  std::string text = "SELECT * FROM ";
  for (const std::string& part : parts()) text += part + " ";
  text += *rc::gen::elementOf(kForbidden) + " ";
  for (const std::string& part : parts()) text += part + " ";
  RC_ASSERT(!IsRepeatable(text));
}

RC_GTEST_PROP(Repeatable, OfAnyText, (const std::string& octets)) {
  (void)IsRepeatable("SELECT * FROM " + octets);
  (void)ChangesSession(octets);
}

}  // namespace
}  // namespace antipode::postgresql
