// Which tables a statement reads, by its text (spec HIST-36).
#include "tables.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokens.h"

namespace antipode::postgresql {
namespace {

using Names = std::vector<std::string>;

TEST(Tables, AreReadAsInTheOtherLanguages) {
  std::ifstream file(ANTIPODE_TABLES);
  const nlohmann::json all = nlohmann::json::parse(file);
  ASSERT_EQ(all.at("kind"), "history-tables");
  ASSERT_FALSE(all.at("cases").empty());
  for (const auto& each : all.at("cases")) {
    EXPECT_EQ(nlohmann::json(TablesRead(each.at("statement").get<std::string>())), each.at("tables")) << each;
  }
}

TEST(Tables, OctetsThatAreNoTextStay) { EXPECT_EQ(TablesRead("SELECT * FROM p\xffsts"), Names{"p\xffsts"}); }

TEST(Tables, OfANameWhosePartNobodyKnows) {
  EXPECT_EQ(TablesRead("SELECT * FROM blog.U&\"d\\0061ta\" t"), Names{""});
  EXPECT_EQ(TablesRead("SELECT * FROM blog."), Names{""});
}

// What goes on in the next line goes on as it began; elsewhere a literal is over.
TEST(Tables, LiteralsOfSeveralLines) {
  for (const char* text :
       {"SELECT 'a' -- b\n -- c\r\n ' from d ', E'e'\r'\\' from f ' FROM posts", "SELECT 'a'\n FROM posts",
        "SELECT E'a' -- '\n FROM posts", "SELECT 'a'\n'b'\n\n'c' FROM posts"}) {
    EXPECT_EQ(TablesRead(text), Names{"posts"}) << text;
  }
  EXPECT_EQ(Divide("'a'\n'b'", false).all.size(), 1U);
  EXPECT_EQ(Divide("'a' 'b'", false).all.size(), 2U);
  EXPECT_EQ(Divide("'a' /* \n */ 'b'", false).all.size(), 2U);
  EXPECT_FALSE(Divide("'a'\n'b", false).sure);
}

// However deep and long: no recursion, and no more work than the text is long.
TEST(Tables, OfLongStatements) {
  constexpr int kMany = 50'000;
  const auto many = [](std::string_view part) {
    std::string text;
    for (int count = 0; count < kMany; ++count) text += part;
    return text;
  };
  for (const char* part : {"(",
                           ")",
                           "a, ",
                           "from ",
                           "from (",
                           "with x as (",
                           "with x(",
                           ", x (",
                           "with x as (select), ",
                           "\\",
                           "'a' ",
                           "'a'\n",
                           "$a",
                           "$a$ $a$ ",
                           "/*",
                           "--\n",
                           "\"a\".",
                           "from a.",
                           ";",
                           "select * from t; ",
                           "E'\\''"}) {
    (void)TablesRead("SELECT * FROM posts " + many(part));
    (void)TablesRead("WITH " + many(part));
  }
  std::string list = "SELECT * FROM t";
  for (int count = 0; count < kMany; ++count) list += ", t" + std::to_string(count);
  EXPECT_EQ(TablesRead(list).size(), 33U);
}

// Words and signs of statements, and literals; all that is secret stands in one of those.
const Names& Parts() {
  static const auto& parts = *new Names{"select",
                                        "from",
                                        "join",
                                        "table",
                                        "copy",
                                        "to stdout",
                                        "with",
                                        "recursive",
                                        "as",
                                        "as (",
                                        "(",
                                        ")",
                                        ",",
                                        ";",
                                        ".",
                                        "*",
                                        "posts",
                                        "\"Po sts\"",
                                        "only",
                                        "lateral",
                                        "rows from",
                                        "extract(",
                                        "is distinct from",
                                        "call",
                                        "explain",
                                        "where",
                                        "on",
                                        "1",
                                        "$1",
                                        "--c\n",
                                        "/* ' */",
                                        "u",
                                        "&",
                                        "",
                                        "E'\\\\'",
                                        "' from secret '",
                                        "'''secret'",
                                        "E'\\' from secret '",
                                        "$$ from secret $$",
                                        "e'a' --b\n'\\' from secret'",
                                        "$a$ from secret $$ $a$",
                                        "N'secret'",
                                        "U&'\\0041 from secret'"};
  return parts;
}

RC_GTEST_PROP(Tables, NothingOfALiteralIsTold, ()) {
  std::string text = "select * from ";
  for (const std::string& part : *rc::gen::container<Names>(rc::gen::elementOf(Parts()))) {
    text += part + *rc::gen::element<std::string>(" ", "\n");
  }
  for (const std::string& name : TablesRead(text)) RC_ASSERT(name.find("secret") == std::string::npos);
}

// Also where literals, names and comments do not end: an answer, and no name that is longer than the text.
RC_GTEST_PROP(Tables, OfAnyText, (const std::string& octets)) {
  static const Names kSigns{"'", "\"", "\\", "/*", "*/", "$b$", "E'", "U&\"", "\n"};
  std::string text = "select * from " + octets;
  const auto part = rc::gen::oneOf(rc::gen::elementOf(Parts()), rc::gen::elementOf(kSigns));
  for (const std::string& each : *rc::gen::container<Names>(part)) text += each;
  for (const std::string& name : TablesRead(text)) RC_ASSERT(name.size() < text.size());
}

}  // namespace
}  // namespace antipode::postgresql
