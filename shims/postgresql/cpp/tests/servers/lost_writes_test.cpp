// What becomes of a write whose connection is lost, or whose transaction is given up (SCOPE-17, SHIM-6).
#include <functional>
#include <string>
#include <thread>

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string Insert(const std::string& key) { return "INSERT INTO posts (key, value) VALUES ('" + key + "', 'v')"; }

class Lost : public OnServers {
 protected:
  ExecStatusType Do(const std::string& text) { return writer_.Exec(text.c_str()).status(); }

  // Ends the connection while it waits for the lock that another one holds on the table.
  void EndWhileItWaits(const std::function<void()>& write) {
    PGconn* const other = regions_.Plain("a");
    PQclear(PQexec(other, "BEGIN; LOCK TABLE posts IN EXCLUSIVE MODE"));
    const std::string pid = std::to_string(PQbackendPID(writer_.get()));
    std::thread ends([&] {
      Until([&] {
        return regions_.Ask(
                   "a", "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + pid) == "1";
      });
      regions_.Ask("a", "SELECT pg_terminate_backend(" + pid + ")", "postgres");
    });
    write();
    ends.join();
    PQfinish(other);
  }

  Connection writer_ = regions_.Wrapped("a");
};

TEST_F(Lost, InAutocommitModeTheOutcomeIsUnknown) {  // SCOPE-17
  const Scope scope;
  EndWhileItWaits([&] { EXPECT_EQ(Do(Insert("1")), PGRES_FATAL_ERROR); });
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_FALSE(scope->lineage().IsComplete({kStore}));
}

TEST_F(Lost, BeforeItsCommitATransactionIsRolledBack) {
  const Scope scope;
  Do("BEGIN");
  Do("SELECT 1");
  EndWhileItWaits([&] { EXPECT_EQ(Do(Insert("1")), PGRES_FATAL_ERROR); });
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty());
  writer_.Reset();
  EXPECT_EQ(writer_.Status(), CONNECTION_OK);
  Do(Insert("2"));
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "2"));
}

TEST_F(Lost, WhatMayHaveCommittedMeanwhileIsUnknown) {
  const Scope scope;
  Do("BEGIN");
  Do("CREATE TEMPORARY TABLE mine (a integer)");
  EndWhileItWaits([&] {
    EXPECT_EQ(Do("COMMIT; BEGIN; INSERT INTO posts VALUES ('behind', 'v')"), PGRES_FATAL_ERROR);
  });
  EXPECT_EQ(scope->pending().size(), 1U);
}

TEST_F(Lost, ATransactionThatIsGivenUpIsRolledBack) {
  const Scope scope;
  {
    Connection short_lived = regions_.Wrapped("a");
    (void)short_lived.Exec("BEGIN");
    (void)short_lived.Exec(Insert("1").c_str());
  }
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty());
}

// SCOPE-17: somebody may still commit what is open on it.
TEST_F(Lost, AConnectionThatIsTakenAwayInATransaction) {
  Connection writer = regions_.Wrapped("a");
  const Scope scope;
  ASSERT_EQ(writer.Exec("BEGIN").status(), PGRES_COMMAND_OK);
  ASSERT_EQ(writer.Exec("INSERT INTO posts VALUES ('taken away', 'v')").status(), PGRES_COMMAND_OK);
  PGconn* const plain = writer.Release();
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
  PQclear(PQexec(plain, "COMMIT"));
  PQfinish(plain);
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
}

}  // namespace
}  // namespace antipode::postgresql::tests
