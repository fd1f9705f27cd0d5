// What a wrapped connection records of libpq's calls, against real servers (spec SHIM-2, SHIM-6 to SHIM-8, SHIM-11,
// EPOCH-1).
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string Insert(const std::string& key) { return "INSERT INTO posts (key, value) VALUES ('" + key + "', 'v')"; }

class Writes : public OnServers {
 protected:
  ExecStatusType Do(const std::string& text) { return writer_.Exec(text.c_str()).status(); }

  Connection writer_ = regions_.Wrapped("a");
};

TEST_F(Writes, ATransactionJoinsTheScopeWhenItsCommitHasReturned) {
  const Scope scope;
  EXPECT_EQ(Do("BEGIN"), PGRES_COMMAND_OK);
  EXPECT_TRUE(scope->pending().empty()) << "it has written nothing yet";
  EXPECT_EQ(Do(Insert("1")), PGRES_COMMAND_OK);
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_FALSE(scope->lineage().IsComplete({kStore}));
  const Reply committed = writer_.Exec("COMMIT");
  EXPECT_EQ(committed.status(), PGRES_COMMAND_OK);
  EXPECT_STREQ(PQcmdStatus(committed.get()), "COMMIT");
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "1"));
}

TEST_F(Writes, WhatWasRolledBackOrOnlyReadLeavesNothing) {
  const Scope scope;
  Do("BEGIN");
  Do(Insert("1"));
  EXPECT_EQ(Do("ROLLBACK"), PGRES_COMMAND_OK);
  Do("BEGIN");
  Do("SELECT value FROM posts");
  Do("SELECT pg_catalog.pg_database_size('app')");  // a function: the server is asked at the COMMIT
  Do("COMMIT");
  Do("BEGIN");
  Do(Insert("2"));
  EXPECT_EQ(Do("nonsense"), PGRES_FATAL_ERROR);
  const Reply ended = writer_.Exec("COMMIT");  // which rolls it back
  EXPECT_STREQ(PQcmdStatus(ended.get()), "ROLLBACK");
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty()) << scope.lineage();
}

TEST_F(Writes, SavepointsBelongToTheirTransaction) {
  const Scope scope;
  Do("BEGIN");
  Do(Insert("kept"));
  Do("SAVEPOINT here");
  Do(Insert("gone"));
  EXPECT_EQ(Do("ROLLBACK TO here"), PGRES_COMMAND_OK);
  EXPECT_EQ(scope->pending().size(), 1U);
  Do("END");
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "kept"));
  EXPECT_FALSE(regions_.Shows("a", "gone"));
}

TEST_F(Writes, ACommitThatFailsLeavesNothing) {
  regions_.Ask("a", "CREATE TABLE late (key integer, CONSTRAINT late_key UNIQUE (key) DEFERRABLE INITIALLY DEFERRED)");
  const Scope scope;
  Do("BEGIN");
  Do("INSERT INTO late VALUES (1), (1)");
  const Reply failed = writer_.Exec("COMMIT");
  EXPECT_EQ(failed.status(), PGRES_FATAL_ERROR);
  EXPECT_STREQ(PQresultErrorField(failed.get(), PG_DIAG_SQLSTATE), "23505");
  EXPECT_NE(std::string(writer_.ErrorMessage()).find("late_key"), std::string::npos);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_EQ(Do("SELECT 1"), PGRES_TUPLES_OK) << "the connection is usable";
  regions_.Ask("a", "DROP TABLE late");
}

// The error comes behind the results of the write and of our question, and is the write's own.
TEST_F(Writes, AWriteInAutocommitModeThatFailsWhenItIsCommitted) {
  regions_.Ask("a", "CREATE TABLE late (key integer, CONSTRAINT late_key UNIQUE (key) DEFERRABLE INITIALLY DEFERRED)");
  Do("INSERT INTO late VALUES (1)");
  const Scope scope;
  for (int turn = 0; turn < 3; ++turn) {
    const Reply failed = writer_.Exec("INSERT INTO late VALUES (1)");
    EXPECT_EQ(failed.status(), PGRES_FATAL_ERROR);
    EXPECT_STREQ(PQresultErrorField(failed.get(), PG_DIAG_SQLSTATE), "23505");
    EXPECT_TRUE(scope->pending().empty());
    EXPECT_TRUE(scope.lineage().empty());
    EXPECT_EQ(writer_.PipelineStatus(), PQ_PIPELINE_OFF);
  }
  EXPECT_EQ(Do("SELECT 1"), PGRES_TUPLES_OK) << "the connection is usable";
  Do("INSERT INTO late VALUES (2)");
  EXPECT_FALSE(scope.lineage().empty());
  regions_.Ask("a", "DROP TABLE late");
}

// The write and our question are answered, the commit is not: nobody knows its outcome.
TEST_F(Writes, AConnectionThatEndsWhenTheWriteIsCommitted) {
  regions_.Ask("a", "CREATE TABLE ending (key integer)");
  regions_.Ask("a",
               "CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
               "pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END $$");
  regions_.Ask("a",
               "CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON ending DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
               "EXECUTE FUNCTION ends()");
  const Scope scope;
  EXPECT_EQ(Do("INSERT INTO ending VALUES (1)"), PGRES_FATAL_ERROR);
  ASSERT_EQ(scope->pending().size(), 1U);
  regions_.Ask("a", "DROP TABLE ending");
  regions_.Ask("a", "DROP FUNCTION ends()");
}

// One packet, and the results are libpq's own (SHIM-2).
TEST_F(Writes, AWriteInAutocommitMode) {
  const Scope scope;
  const Reply own = writer_.Exec("INSERT INTO posts VALUES ('1', 'v') RETURNING key, value");
  ASSERT_EQ(own.status(), PGRES_TUPLES_OK);
  EXPECT_STREQ(PQgetvalue(own.get(), 0, 0), "1");
  EXPECT_STREQ(PQcmdStatus(own.get()), "INSERT 0 1");
  const Ordered first = PositionIn(scope.lineage());
  const char* const values[] = {"2", "w"};
  const Reply second = writer_.ExecParams("INSERT INTO posts VALUES ($1, $2)", 2, nullptr, values, nullptr, nullptr, 0);
  EXPECT_STREQ(PQcmdTuples(second.get()), "1");
  EXPECT_GT(PositionIn(scope.lineage()).counter, first.counter);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "2"));
}

TEST_F(Writes, AnErrorInAutocommitModeLeavesNothingAndIsTheServersOwn) {
  Do(Insert("1"));
  const Scope scope;
  const Reply twice = writer_.Exec(Insert("1").c_str());
  EXPECT_STREQ(PQresultErrorField(twice.get(), PG_DIAG_SQLSTATE), "23505");
  EXPECT_STREQ(writer_.ErrorMessage(), PQresultErrorMessage(twice.get()));
  EXPECT_EQ(Do("INSERT nonsense"), PGRES_FATAL_ERROR);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_EQ(writer_.TransactionStatus(), PQTRANS_IDLE);
  EXPECT_EQ(writer_.PipelineStatus(), PQ_PIPELINE_OFF);
}

// The question is prepared where the client prepares its own statements, and forgotten with them (SHIM-5).
TEST_F(Writes, PreparedStatements) {
  ASSERT_EQ(writer_.Prepare("add", "INSERT INTO posts VALUES ($1, 'v')", 1, nullptr).status(), PGRES_COMMAND_OK);
  std::uint64_t last = 0;
  for (int number = 0; number < 6; ++number) {
    const Scope scope;
    if (number == 3) {
      EXPECT_EQ(Do("DISCARD ALL"), PGRES_COMMAND_OK);
      ASSERT_EQ(writer_.Prepare("add", "INSERT INTO posts VALUES ($1, 'v')", 1, nullptr).status(), PGRES_COMMAND_OK);
    }
    const std::string key = std::to_string(number);
    const char* const values[] = {key.c_str()};
    EXPECT_EQ(writer_.ExecPrepared("add", 1, values, nullptr, nullptr, 0).status(), PGRES_COMMAND_OK);
    EXPECT_GT(PositionIn(scope.lineage()).counter, last);
    last = PositionIn(scope.lineage()).counter;
    EXPECT_TRUE(regions_.Shows("a", key));
  }
  const Reply ours = writer_.Exec("SELECT name FROM pg_prepared_statements WHERE name <> 'add'");
  ASSERT_EQ(PQntuples(ours.get()), 1);
  EXPECT_STREQ(PQgetvalue(ours.get(), 0, 0), "_antipode_question");
  // A name that came to mean another statement may write.
  const Scope scope;
  ASSERT_EQ(writer_.Prepare("harmless", "SELECT 1", 0, nullptr).status(), PGRES_COMMAND_OK);
  Do("DEALLOCATE harmless");
  Do("PREPARE harmless AS INSERT INTO posts VALUES ('hidden', 'v')");
  (void)writer_.ExecPrepared("harmless", 0, nullptr, nullptr, nullptr, 0);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "hidden"));
}

// Our questions replace the unnamed statement, and nobody may notice (SHIM-2).
TEST_F(Writes, TheUnnamedStatementStaysTheApplications) {
  const Scope scope;
  ASSERT_EQ(writer_.Prepare("", "INSERT INTO posts VALUES ($1, 'v')", 1, nullptr).status(), PGRES_COMMAND_OK);
  for (const char* key : {"1", "2", "3"}) {
    const char* const values[] = {key};
    EXPECT_EQ(writer_.ExecPrepared("", 1, values, nullptr, nullptr, 0).status(), PGRES_COMMAND_OK);
  }
  const Reply described = writer_.DescribePrepared("");
  EXPECT_EQ(PQnparams(described.get()), 1);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "3"));
  for (const bool sends : {false, true}) {  // a preparation that fails leaves none
    const char* const values[] = {"never"};
    ASSERT_EQ(writer_.Prepare("", "INSERT INTO posts VALUES ($1, 'v')", 1, nullptr).status(), PGRES_COMMAND_OK);
    if (sends) {
      ASSERT_EQ(writer_.SendPrepare("", "nonsense", 0, nullptr), 1);
      Until([&] { return writer_.GetResult().get() == nullptr; });
    } else {
      ASSERT_EQ(writer_.Prepare("", "nonsense", 0, nullptr).status(), PGRES_FATAL_ERROR);
    }
    const Reply none = writer_.ExecPrepared("", 1, values, nullptr, nullptr, 0);
    EXPECT_STREQ(PQresultErrorField(none.get(), PG_DIAG_SQLSTATE), "26000");
    EXPECT_EQ(writer_.DescribePrepared("").status(), PGRES_FATAL_ERROR);
  }
  EXPECT_FALSE(regions_.Shows("a", "never"));
}

// Bodies that write what their text does not show, and several statements in one.
TEST_F(Writes, WhatItsTextDoesNotShow) {
  regions_.Ask("a",
               "CREATE OR REPLACE FUNCTION add_post(key text) RETURNS void LANGUAGE sql AS "
               "$$ INSERT INTO posts VALUES (key, 'v') $$");
  const Scope scope;
  Do("SELECT add_post('called')");
  const Ordered first = PositionIn(scope.lineage());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "called"));
  Do("BEGIN; INSERT INTO posts VALUES ('several', 'v'); COMMIT");
  EXPECT_GT(PositionIn(scope.lineage()).counter, first.counter);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "several"));
  EXPECT_EQ(Do("BEGIN; INSERT INTO posts VALUES ('part', 'v'); COMMIT; nonsense()"), PGRES_FATAL_ERROR);
  EXPECT_FALSE(scope.lineage().IsComplete({kStore})) << "a part may have been committed";
}

TEST_F(Writes, Copy) {
  const Scope scope;
  ASSERT_EQ(Do("COPY posts (key, value) FROM STDIN"), PGRES_COPY_IN);
  EXPECT_EQ(scope->pending().size(), 1U);
  ASSERT_EQ(writer_.PutCopyData("copied\tv\n", 9), 1);
  ASSERT_EQ(writer_.PutCopyEnd(), 1);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_COMMAND_OK);
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "copied"));
  const Scope failing;
  ASSERT_EQ(Do("COPY posts (key, value) FROM STDIN"), PGRES_COPY_IN);
  ASSERT_EQ(writer_.PutCopyEnd("given up"), 1);
  while (writer_.GetResult().get() != nullptr) continue;
  EXPECT_TRUE(failing->pending().empty());
  EXPECT_TRUE(failing.lineage().OfStore(kStore).empty());
}

TEST_F(Writes, AsynchronousCommands) {
  const Scope scope;
  ASSERT_EQ(writer_.SendQuery(Insert("sent").c_str()), 1);
  EXPECT_EQ(scope->pending().size(), 1U);
  Until([&] { return writer_.ConsumeInput() == 1 && writer_.IsBusy() == 0; });
  EXPECT_EQ(writer_.GetResult().status(), PGRES_COMMAND_OK);
  EXPECT_EQ(scope->pending().size(), 1U) << "it is not over yet";
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "sent"));
  const Ordered first = PositionIn(scope.lineage());
  for (const char* text : {"BEGIN", "INSERT INTO posts VALUES ('in a block', 'v')", "COMMIT"}) {
    ASSERT_EQ(writer_.SendQuery(text), 1);
    while (writer_.GetResult().get() != nullptr) continue;
  }
  EXPECT_GT(PositionIn(scope.lineage()).counter, first.counter);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "in a block"));
  const Scope failing;
  ASSERT_EQ(writer_.SendQuery(Insert("sent").c_str()), 1);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_FATAL_ERROR);
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_TRUE(failing->pending().empty());
  EXPECT_TRUE(failing.lineage().empty());
}

// libpq throws its result away when another call waits: it was written all the same.
TEST_F(Writes, AnAsynchronousCommandWhoseResultIsNotRead) {
  const std::vector<std::function<void()>> behind = {
      [&] { EXPECT_EQ(Do("SELECT 1"), PGRES_TUPLES_OK); },
      [&] { EXPECT_EQ(writer_.Prepare("later", "SELECT 1", 0, nullptr).status(), PGRES_COMMAND_OK); },
      [&] { EXPECT_EQ(writer_.DescribePrepared("later").status(), PGRES_COMMAND_OK); },
      [&] { EXPECT_EQ(writer_.DescribePortal("none").status(), PGRES_FATAL_ERROR); },
  };
  for (std::size_t number = 0; number < behind.size(); ++number) {
    const Scope scope;
    const std::string key = "sent " + std::to_string(number);
    ASSERT_EQ(writer_.SendQuery(Insert(key).c_str()), 1);
    behind[number]();
    EXPECT_EQ(writer_.GetResult().get(), nullptr);
    EXPECT_TRUE(scope->pending().empty()) << number;
    EXPECT_EQ(scope.lineage().OfStore(kStore).size(), 1U) << number;
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key)) << number;
  }
}

TEST_F(Writes, PipelineMode) {
  const Scope scope;
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  for (const char* key : {"p1", "p2"}) {
    const char* const values[] = {key};
    ASSERT_EQ(writer_.SendQueryParams("INSERT INTO posts VALUES ($1, 'v')", 1, nullptr, values, nullptr, nullptr, 0),
              1);
  }
  ASSERT_EQ(writer_.PipelineSync(), 1);
  for (int command = 0; command < 2; ++command) {
    EXPECT_EQ(writer_.GetResult().status(), PGRES_COMMAND_OK);
    EXPECT_EQ(writer_.GetResult().get(), nullptr);
  }
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  EXPECT_TRUE(scope->pending().empty()) << "nothing is on its way any more";
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "p2"));
  const Ordered first = PositionIn(scope.lineage());
  ASSERT_EQ(writer_.SendQueryParams(Insert("p3").c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.PipelineSync(), 1);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_COMMAND_OK);
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  EXPECT_GT(PositionIn(scope.lineage()).counter, first.counter);
  EXPECT_EQ(writer_.ExitPipelineMode(), 1);
  EXPECT_EQ(Do("SELECT 1"), PGRES_TUPLES_OK);
}

// SHIM-2: libpq's own words, also where nothing was sent.
TEST_F(Writes, WhatAPipelineDoesNotTakeSaysWhy) {
  const Scope scope;
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  EXPECT_EQ(writer_.SendQuery("BEGIN; INSERT INTO posts VALUES ('not sent', 'v'); COMMIT"), 0);
  EXPECT_NE(std::string(writer_.ErrorMessage()).find("pipeline mode"), std::string::npos) << writer_.ErrorMessage();
  EXPECT_NE(std::string(PQerrorMessage(writer_.get())).find("pipeline mode"), std::string::npos) << "for later, too";
  EXPECT_TRUE(scope->pending().empty() && scope.lineage().empty());
  EXPECT_EQ(writer_.ExitPipelineMode(), 1);
}

// SCOPE-25: no rollback throws away what was committed within what was taken for one transaction.
TEST_F(Writes, ACommitInsideAnOpenTransaction) {
  for (const char* const commits : {"COMMIT AND CHAIN", "COMMIT; BEGIN"}) {
    const Scope scope;
    Do("BEGIN");
    Do(Insert(commits));
    Do(commits);
    EXPECT_FALSE(scope->lineage().IsComplete({kStore}));
    EXPECT_EQ(Do("ROLLBACK"), PGRES_COMMAND_OK);
    EXPECT_TRUE(scope->pending().empty());
    EXPECT_EQ(scope.lineage().OfStore(kStore).size(), 1U);
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), commits));
    const Scope given_up;
    {
      Connection short_lived = regions_.Wrapped("a");
      for (const char* text : {"BEGIN", "INSERT INTO posts VALUES ('given up', 'v')", commits}) {
        (void)short_lived.Exec(text);
      }
    }
    EXPECT_TRUE(regions_.Shows("a", "given up"));
    EXPECT_FALSE(given_up->lineage().IsComplete({kStore})) << "nobody can tell";
    regions_.Ask("a", "DELETE FROM posts");
  }
  const Scope scope;
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  for (const char* text : {"INSERT INTO posts VALUES ('piped', 'v')", "COMMIT", "BEGIN"}) {
    ASSERT_EQ(writer_.SendQueryParams(text, 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  }
  ASSERT_EQ(writer_.PipelineSync(), 1);
  Until([&] { return writer_.GetResult().status() == PGRES_PIPELINE_SYNC; });
  ASSERT_EQ(writer_.ExitPipelineMode(), 1);
  EXPECT_EQ(Do("ROLLBACK"), PGRES_COMMAND_OK);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "piped"));
}

TEST_F(Writes, TwoPhaseCommit) {
  const Scope scope;
  Do("BEGIN");
  Do(Insert("two-phase"));
  EXPECT_EQ(Do("PREPARE TRANSACTION 'cpp'"), PGRES_COMMAND_OK);
  EXPECT_EQ(scope->pending().size(), 1U) << "pending until it is committed";
  EXPECT_TRUE(scope->Known().empty());
  EXPECT_EQ(Do("COMMIT PREPARED 'nothing of that name'"), PGRES_FATAL_ERROR);
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_EQ(Do("COMMIT PREPARED 'cpp'"), PGRES_COMMAND_OK);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "two-phase"));
  const Scope undone;
  Do("BEGIN");
  Do(Insert("undone"));
  Do("PREPARE TRANSACTION 'cpp'");
  EXPECT_EQ(Do("ROLLBACK PREPARED 'cpp'"), PGRES_COMMAND_OK);
  EXPECT_TRUE(undone->pending().empty());
  EXPECT_TRUE(undone.lineage().empty());
}

// A crash may lose such a commit, and use its place in the log again (EPOCH-3).
TEST_F(Writes, AsynchronousCommits) {
  Do("SET synchronous_commit = off");
  for (int number = 0; number < 20; ++number) {
    const std::string key = "off-" + std::to_string(number);
    const Scope scope;
    if (number % 2 == 0) {
      Do(Insert(key));
    } else {
      Do("BEGIN");
      Do(Insert(key));
      Do("COMMIT");
    }
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key));
  }
  Connection careful =
      regions_.Wrapped("a", [](Options& options) { options.CommitsWithoutFlush(AsyncCommits::kIncomplete); });
  const Scope scope;
  (void)careful.Exec("SET synchronous_commit = off");
  (void)careful.Exec(Insert("incomplete").c_str());
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
  EXPECT_TRUE(scope->pending().empty());
}

// Its position would cover what a crash may lose. A function before the server's own makes the commit of our question
// fail.
TEST_F(Writes, AFlushWhoseCommitFailsProvesNothing) {
  regions_.Ask("a", "CREATE SCHEMA shadow");
  regions_.Ask("a", "CREATE TABLE shadow.once AS SELECT 1 AS n");
  regions_.Ask("a", "ALTER TABLE shadow.once ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED");
  regions_.Ask(
      "a",
      "CREATE FUNCTION shadow.pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn LANGUAGE sql SECURITY DEFINER"
      " AS $$ INSERT INTO shadow.once VALUES (1); SELECT '0/0'::pg_lsn $$");
  regions_.Ask("a", "GRANT USAGE ON SCHEMA shadow TO PUBLIC");
  Do("SET search_path = shadow, pg_catalog, public");
  Do("SET synchronous_commit = off");
  const Scope scope;
  EXPECT_EQ(Do(Insert("unflushed")), PGRES_COMMAND_OK);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().OfStore(kStore).empty()) << scope.lineage();
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
  regions_.Ask("a", "DROP SCHEMA shadow CASCADE");
}

TEST_F(Writes, ManyCommitsBesideABusyNeighbour) {
  Connection neighbour = regions_.Wrapped("a");
  (void)neighbour.Exec("BEGIN");
  for (int number = 0; number < 60; ++number) {
    const std::string key = "many-" + std::to_string(number);
    (void)neighbour.Exec(("INSERT INTO posts VALUES ('other-" + key + "', repeat('x', 700))").c_str());
    const Scope scope;
    Do(Insert(key));
    ASSERT_TRUE(ComesTo(regions_, scope.lineage(), key));
  }
  EXPECT_EQ(neighbour.Exec("ROLLBACK").status(), PGRES_COMMAND_OK);
}

}  // namespace
}  // namespace antipode::postgresql::tests
