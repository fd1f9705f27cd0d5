// Texts that look like reads, and write by what the database has (spec SHIM-43).
#include <chrono>
#include <thread>

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

class UnsureTexts : public OnServers {};

// SHIM-43: what the text does not show, and the server has told when the connection was wrapped.
TEST_F(UnsureTexts, WhatLooksLikeARead) {
  regions_.Ask("a",
               "CREATE FUNCTION noted(key text) RETURNS boolean LANGUAGE sql AS "
               "$$ INSERT INTO posts VALUES (key, 'v') RETURNING true $$");
  regions_.Ask("a", "CREATE VIEW logged AS SELECT noted('by a view') AS done");
  regions_.Ask("a", "CREATE FUNCTION version(key text) RETURNS boolean LANGUAGE sql AS $$ SELECT noted(key) $$");
  regions_.Ask("a",
               "CREATE FUNCTION noted_too(a text, b text) RETURNS boolean LANGUAGE sql AS $$ SELECT noted(a || b) $$");
  regions_.Ask("a", "CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = noted_too)");
  Connection writer = regions_.Wrapped("a", {}, "asked-anew");
  const auto lineage_of = [&](const char* text) {
    const Scope scope;
    EXPECT_EQ(writer.Exec(text).status(), PGRES_TUPLES_OK) << writer.ErrorMessage();
    return scope.lineage();
  };
  for (const auto& [text, key] :
       {std::pair("SELECT * FROM logged", "by a view"), std::pair("SELECT version('overload')", "overload"),
        std::pair("SELECT 'oper'::text === 'ator'::text", "operator")}) {
    EXPECT_EQ(lineage_of(text).OfStore("asked-anew").size(), 1U) << text;
    EXPECT_TRUE(regions_.Shows("a", key)) << text;
  }
  EXPECT_TRUE(lineage_of("SELECT * FROM posts").empty());
  const Scope held;  // SCOPE-25: the query of a held cursor runs in the commit
  for (const char* text : {"BEGIN", "DECLARE kept CURSOR WITH HOLD FOR SELECT noted('held')", "COMMIT"}) {
    EXPECT_EQ(writer.Exec(text).status(), PGRES_COMMAND_OK) << writer.ErrorMessage();
  }
  EXPECT_EQ(held.lineage().OfStore("asked-anew").size(), 1U);
  regions_.Ask("a", "DROP FUNCTION noted(text) CASCADE");
  regions_.Ask("a", "DROP FUNCTION version(text)");
  regions_.Ask("a", "DROP FUNCTION noted_too(text, text) CASCADE");
}

// SHIM-43: the server is asked again, where that was ten seconds ago.
TEST_F(UnsureTexts, WhatIsMadeBetweenTwoWrapsCountsForTheSecond) {
  { const Connection first = regions_.Wrapped("a", {}, "asked-twice"); }
  regions_.Ask("a", "CREATE SEQUENCE since_numbers");
  regions_.Ask("a", "CREATE VIEW made_since AS SELECT setval('since_numbers', 7)");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool is_recorded = false;
  while (!is_recorded && std::chrono::steady_clock::now() < deadline) {
    Connection second = regions_.Wrapped("a", {}, "asked-twice");
    const Scope scope;
    EXPECT_EQ(second.Exec("SELECT * FROM made_since").status(), PGRES_TUPLES_OK) << second.ErrorMessage();
    is_recorded = !scope.lineage().OfStore("asked-twice").empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_TRUE(is_recorded);
  regions_.Ask("a", "DROP SEQUENCE since_numbers CASCADE");
}

}  // namespace
}  // namespace antipode::postgresql::tests
