// Writes whose transaction somebody else ends, or nobody does (spec SHIM-43, SCOPE-17, SCOPE-24, SCOPE-25): each scope
// that wrote has the commit's position, or is in doubt.
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string Insert(const std::string& key) { return "INSERT INTO posts (key, value) VALUES ('" + key + "', 'v')"; }

void Take(Connection& connection) {
  while (connection.GetResult().get() != nullptr) continue;
}

class Ends : public OnServers {
 protected:
  // Begins a transaction that writes, of this scope; it is left before the end.
  void Begin(const Scope& scope, Connection& writer, const std::string& key = "1") {
    EXPECT_TRUE(scope->pending().empty());
    Must(writer.Exec("BEGIN"));
    Must(writer.Exec(Insert(key).c_str()));
    EXPECT_EQ(scope->pending().size(), 1U);
  }

  // What leaves says that something may be missing.
  static void IsInDoubt(const Scope& scope) {
    EXPECT_EQ(scope->pending().size(), 1U);
    EXPECT_FALSE(scope.lineage().IsComplete({kStore})) << scope.lineage();
  }

  Connection writer_ = regions_.Wrapped("a");
};

TEST_F(Ends, AnotherScopesCommitResolvesTheWrite) {
  const std::vector<std::function<void()>> commits{
      [&] { Must(writer_.Exec("COMMIT")); },
      [&] {
        ASSERT_EQ(writer_.SendQuery("COMMIT"), 1);
        Take(writer_);
      },
      [&] { Must(writer_.Exec("COMMIT; SELECT 1")); },
      [&] { Must(writer_.Exec("/* done */ end")); },
      [&] { std::thread([&] { Must(writer_.Exec("COMMIT")); }).join(); },
  };
  int number = 0;
  for (const auto& commit : commits) {
    const std::string key = std::to_string(++number);
    const Scope scope;
    Begin(scope, writer_, key);
    {
      const Scope other;
      commit();
    }
    EXPECT_TRUE(scope->pending().empty());
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key));
    EXPECT_GE(PositionIn(scope.lineage()).counter, 1U);
  }
}

TEST_F(Ends, WhatIsGivenAwayWhileItIsSentMayBeCommittedThere) {
  const Scope scope;
  Must(writer_.Exec("BEGIN"));
  ASSERT_EQ(writer_.SendQuery(Insert("1").c_str()), 1);
  PGconn* const plain = writer_.Release();
  while (PGresult* const result = PQgetResult(plain)) PQclear(result);
  PQclear(PQexec(plain, "COMMIT"));
  PQfinish(plain);
  EXPECT_TRUE(regions_.Shows("a", "1"));
  IsInDoubt(scope);
}

TEST_F(Ends, WhatIsGivenAwayInErrorMayBeBroughtBackThere) {
  const Scope scope;
  Begin(scope, writer_);
  Must(writer_.Exec("SAVEPOINT here"));
  EXPECT_EQ(writer_.Exec("nonsense").status(), PGRES_FATAL_ERROR);
  PGconn* const plain = writer_.Release();
  PQclear(PQexec(plain, "ROLLBACK TO here"));
  PQclear(PQexec(plain, "COMMIT"));
  PQfinish(plain);
  EXPECT_TRUE(regions_.Shows("a", "1"));
  IsInDoubt(scope);
}

TEST_F(Ends, WhatLibpqItselfCommitsIsFoundLaterOrStaysInDoubt) {
  const Scope scope;
  Begin(scope, writer_);
  PQclear(PQexec(writer_.get(), "COMMIT"));
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
  Must(writer_.Exec("SELECT 1"));
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "1"));
  const Scope second;
  {
    Connection short_lived = regions_.Wrapped("a");
    Begin(second, short_lived, "2");
    PQclear(PQexec(short_lived.get(), "COMMIT"));
  }
  IsInDoubt(second);
}

// SCOPE-25: what comes behind such a COMMIT, and fails or rolls back, says nothing of it.
TEST_F(Ends, WhatLibpqItselfCommitsNoLaterCallThrowsAway) {
  const auto fails = [&](const char* text) { EXPECT_EQ(writer_.Exec(text).status(), PGRES_FATAL_ERROR) << text; };
  const std::vector<std::function<void(const std::string&)>> next{
      [&](const std::string&) { (void)writer_.Exec("ROLLBACK"); },
      [&](const std::string&) { fails("SELECT 1/0"); },
      [&](const std::string& key) { fails(Insert(key).c_str()); },
      [&](const std::string&) { Must(writer_.Exec("BEGIN")), Must(writer_.Exec("ROLLBACK")); },
      [&](const std::string&) { (void)writer_.Exec("ROLLBACK; BEGIN"), Must(writer_.Exec("ROLLBACK")); },
      [&](const std::string&) { EXPECT_EQ(writer_.Prepare("q", "nonsense", 0, nullptr).status(), PGRES_FATAL_ERROR); },
      [&](const std::string&) { EXPECT_EQ(writer_.SendQuery("SELECT 1/0"), 1), Take(writer_); },
      [&](const std::string&) { EXPECT_EQ(writer_.SendQuery("ROLLBACK"), 1), Take(writer_); },
  };
  int number = 0;
  for (const auto& call : next) {
    const std::string key = std::to_string(++number);
    const Scope scope;
    Begin(scope, writer_, key);
    PQclear(PQexec(writer_.get(), "COMMIT"));
    call(key);
    EXPECT_TRUE(scope->pending().empty()) << number;
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key)) << number;
    EXPECT_GE(PositionIn(scope.lineage()).counter, 1U) << number;
  }
}

// SCOPE-25: nor does what comes behind one whose answer was not taken.
TEST_F(Ends, WhatLibpqItselfHasSentNoLaterCallThrowsAway) {
  const std::vector<std::function<void(Connection&)>> ends{
      [](Connection& writer) { (void)writer.Exec("ROLLBACK"); },
      [](Connection& writer) { (void)writer.Exec("SELECT 1/0"); },
      [](Connection& writer) { (void)writer.Prepare("q", "nonsense", 0, nullptr); },
      [](Connection& writer) { EXPECT_EQ(writer.SendQuery("ROLLBACK"), 0); },
      [](Connection& writer) { writer.Reset(); },
      [](Connection& writer) { PQfinish(writer.Release()); },
      [](Connection&) {},
  };
  int number = 0;
  for (const auto& end : ends) {
    const std::string key = "sent " + std::to_string(++number);
    const Scope scope;
    {
      Connection writer = regions_.Wrapped("a");
      Begin(scope, writer, key);
      ASSERT_EQ(PQsendQuery(writer.get(), "COMMIT"), 1);
      end(writer);
    }
    Until([&] { return regions_.Shows("a", key); });
    IsInDoubt(scope);
  }
  const Scope scope;  // its answer is taken as that of another command
  Begin(scope, writer_, "behind");
  ASSERT_EQ(writer_.SendQuery("SELECT 1"), 1);
  while (PGresult* const result = PQgetResult(writer_.get())) PQclear(result);
  ASSERT_EQ(PQsendQuery(writer_.get(), "COMMIT; SELECT 1/0"), 1);
  Take(writer_);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "behind"));
  EXPECT_GE(PositionIn(scope.lineage()).counter, 1U);
}

// SCOPE-25: a command that libpq refuses says nothing of the COMMIT that is on its way.
TEST_F(Ends, ACommandThatIsRefusedBehindACommitSaysNothingOfIt) {
  for (const bool is_heard : {false, true}) {
    const std::string key = is_heard ? "heard" : "unheard";
    const Scope scope;
    {
      Connection writer = regions_.Wrapped("a");
      Begin(scope, writer, key);
      ASSERT_EQ(writer.SendQuery("COMMIT"), 1);
      EXPECT_EQ(writer.SendQuery("ROLLBACK"), 0);
      EXPECT_NE(std::string(writer.ErrorMessage()).find("in progress"), std::string::npos) << writer.ErrorMessage();
      if (is_heard) Take(writer);
    }
    Until([&] { return regions_.Shows("a", key); });
    if (is_heard) {
      EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key));
    } else {
      IsInDoubt(scope);
    }
  }
}

// SCOPE-25: it shows to nobody whose the open transaction is, so the write is in doubt, and another one begins.
TEST_F(Ends, WhatLibpqItselfCommitsBeforeABeginOrPreparesStaysInDoubt) {
  int number = 0;
  for (const char* end : {"COMMIT; BEGIN", "COMMIT AND CHAIN", "PREPARE TRANSACTION 'elsewhere'",
                          "PREPARE TRANSACTION 'elsewhere'; BEGIN"}) {
    const std::string key = std::to_string(++number);
    const Scope scope;
    Begin(scope, writer_, key);
    PQclear(PQexec(writer_.get(), end));
    (void)writer_.Exec("ROLLBACK");
    IsInDoubt(scope);
    (void)writer_.Exec("COMMIT PREPARED 'elsewhere'");
    EXPECT_TRUE(regions_.Shows("a", key)) << end;
    const Scope next;
    Begin(next, writer_, key + " and more");
    Must(writer_.Exec("ROLLBACK"));
    EXPECT_TRUE(next.lineage().empty());
  }
  const Scope scope;
  {
    Connection short_lived = regions_.Wrapped("a");
    Begin(scope, short_lived, "closed");
    PQclear(PQexec(short_lived.get(), "COMMIT; BEGIN"));
  }
  IsInDoubt(scope);
}

// Also what libpq knows to be over, or gave its results of by itself.
TEST_F(Ends, WhatWasSentNeedsNoMoreCallsToBeOver) {
  const std::vector<std::function<void()>> takes{
      [&] {
        Must(writer_.GetResult());
        while (writer_.IsBusy() != 0) ASSERT_EQ(writer_.ConsumeInput(), 1);
      },
      [&] { while (PGresult* const result = PQgetResult(writer_.get())) PQclear(result); },
  };
  int number = 0;
  for (const auto& take : takes) {
    for (const bool waits : {false, true}) {
      const std::string key = "sent " + std::to_string(++number);
      const Scope scope;
      ASSERT_EQ(writer_.SendQuery(Insert(key).c_str()), 1);
      take();
      if (waits) {
        EXPECT_EQ(writer_.Exec("SELECT 1/0").status(), PGRES_FATAL_ERROR);
      } else {
        ASSERT_EQ(writer_.SendQuery("SELECT 1/0"), 1);
        Take(writer_);
      }
      EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key)) << key;
      EXPECT_GE(PositionIn(scope.lineage()).counter, 1U) << key;
    }
  }
}

// The COMMIT's answer never came, and nobody but libpq knows that it was sent.
TEST_F(Ends, AConnectionThatLibpqItselfLosesMayHaveCommitted) {
  const std::vector<std::function<void(Connection&)>> ends{
      [](Connection& writer) { (void)writer.Exec("SELECT 1"); },
      [](Connection& writer) { writer.Reset(); },
      [](Connection& writer) { PQfinish(writer.Release()); },
      [](Connection&) {},
  };
  for (const auto& end : ends) {
    const Scope scope;
    {
      Connection writer = regions_.Wrapped("a");
      Begin(scope, writer, "lost");
      shutdown(PQsocket(writer.get()), SHUT_RDWR);
      PQclear(PQexec(writer.get(), "COMMIT"));
      end(writer);
    }
    IsInDoubt(scope);
  }
}

TEST_F(Ends, AConnectionThatIsMadeAnewRollsItBack) {
  const Scope scope;
  Begin(scope, writer_);
  writer_.Reset();
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_FALSE(regions_.Shows("a", "1"));
}

TEST_F(Ends, AConnectionThatLibpqItselfMakesAnewMayHaveCommittedBefore) {
  const Scope scope;
  Begin(scope, writer_);
  PQclear(PQexec(writer_.get(), "COMMIT"));
  PQreset(writer_.get());
  Must(writer_.Exec("SELECT 1"));
  EXPECT_TRUE(regions_.Shows("a", "1"));
  IsInDoubt(scope);
}

// The end of one prepared transaction says nothing of another.
TEST_F(Ends, APreparedTransactionIsToldByItsName) {
  const Scope first;
  Begin(first, writer_, "first");
  Must(writer_.Exec("PREPARE TRANSACTION 'first'"));
  const Scope second;
  Begin(second, writer_, "second");
  Must(writer_.Exec("PREPARE TRANSACTION 'second'"));
  Must(writer_.Exec("COMMIT PREPARED 'first'"));
  EXPECT_TRUE(ComesTo(regions_, first.lineage(), "first"));
  IsInDoubt(second);
  EXPECT_NE(writer_.Exec("ROLLBACK PREPARED 'third'").status(), PGRES_COMMAND_OK);
  IsInDoubt(second);
  EXPECT_NE(writer_.Exec("BEGIN; ROLLBACK PREPARED 'second'").status(), PGRES_COMMAND_OK);
  Must(writer_.Exec("ROLLBACK"));
  Must(writer_.Exec("COMMIT PREPARED 'second'"));
  EXPECT_TRUE(ComesTo(regions_, second.lineage(), "second"));
}

TEST_F(Ends, WhatATextOfSeveralStatementsPreparesIsInDoubt) {
  const Scope scope;
  Must(writer_.Exec(("BEGIN; " + Insert("unseen") + "; PREPARE /* */ TRANSACTION 'unseen'").c_str()));
  IsInDoubt(scope);
  const Scope other;
  Must(writer_.Exec("ROLLBACK PREPARED 'unseen'"));
  IsInDoubt(scope);
}

TEST_F(Ends, APreparedTransactionThatAPipelineFailsToCommitStaysInDoubt) {
  const Scope scope;
  Begin(scope, writer_);
  Must(writer_.Exec("PREPARE TRANSACTION 'one'"));
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  for (const char* text : {"SELECT 1/0", "COMMIT PREPARED 'one'"}) {
    ASSERT_EQ(writer_.SendQueryParams(text, 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  }
  ASSERT_EQ(writer_.PipelineSync(), 1);
  for (bool over = false; !over;) over = writer_.GetResult().status() == PGRES_PIPELINE_SYNC;
  ASSERT_EQ(writer_.ExitPipelineMode(), 1);
  EXPECT_FALSE(regions_.Shows("a", "1"));
  EXPECT_FALSE(scope.lineage().IsComplete({kStore})) << scope.lineage();
  Must(writer_.Exec("ROLLBACK PREPARED 'one'"));
}

// SCOPE-25: no text of ours shows the held cursor; the server does.
TEST_F(Ends, WhatAHeldCursorOfABlockWritesInTheCommitIsRecorded) {
  regions_.Ask("a", "CREATE FUNCTION leave_one() RETURNS integer VOLATILE LANGUAGE sql AS "
                    "$$ INSERT INTO posts VALUES ('held', 'v'); SELECT 1 $$");
  const Scope scope;
  Must(writer_.Exec("BEGIN"));
  Must(writer_.Exec("DO $$ BEGIN EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT leave_one()'; END $$"));
  Must(writer_.Exec("COMMIT"));
  EXPECT_TRUE(regions_.Shows("a", "held"));
  EXPECT_GE(PositionIn(scope.lineage()).counter, 1U);
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "held"));
  regions_.Ask("a", "DROP FUNCTION leave_one()");
}

}  // namespace
}  // namespace antipode::postgresql::tests
