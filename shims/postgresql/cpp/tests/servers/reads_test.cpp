// Reads that wait, and that say what they depend on (spec SHIM-12, SHIM-13, BAR-50, BAR-51).
#include <sys/socket.h>

#include "antipode/reading.h"
#include "antipode/settings.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

class Reads : public OnServers {
 protected:
  ~Reads() override {
    regions_.lab().Heal("postgresql");
    regions_.lab().Lag("postgresql", "b1", "2ms");
  }

  static void Waiting(Options& options) { options.store.WaitOnRead(true).Timeout(20s); }

  void Write(const std::string& key) {
    EXPECT_EQ(writer_.Exec(("INSERT INTO posts VALUES ('" + key + "', 'v')").c_str()).status(), PGRES_COMMAND_OK);
  }

  Connection writer_ = regions_.Wrapped("a");
};

TEST_F(Reads, WaitForTheScopesWrites) {
  regions_.lab().Lag("postgresql", "b1", "100ms");
  Connection reader = regions_.Wrapped("b1", Waiting);
  const Scope scope;
  for (const char* key : {"1", "2", "3"}) {
    Write(key);
    const Reply found = reader.Exec((std::string("SELECT value FROM posts WHERE key = '") + key + "'").c_str());
    ASSERT_EQ(found.error(), nullptr);
    EXPECT_EQ(PQntuples(found.get()), 1) << key;
  }
  Write("4");
  ASSERT_EQ(reader.SendQuery("SELECT value FROM posts WHERE key = '4'"), 1);
  EXPECT_EQ(PQntuples(reader.GetResult().get()), 1);
  EXPECT_EQ(reader.GetResult().get(), nullptr);
}

// BAR-50: a server is told by when it was started, whatever clock the application's session shows.
TEST_F(Reads, WaitInASessionWithATimeZoneOfItsOwn) {
  Connection reader = regions_.Wrapped("b1", Waiting);
  ASSERT_EQ(reader.Exec("SET TIME ZONE 'Asia/Tokyo'").status(), PGRES_COMMAND_OK);
  const Scope scope;
  Write("zoned");
  const Reply found = reader.Exec("SELECT value FROM posts WHERE key = 'zoned'");
  ASSERT_EQ(found.error(), nullptr) << found.error()->message;
  EXPECT_EQ(PQntuples(found.get()), 1);
}

// SHIM-44: a pipeline's read waits where nothing is on its way, and is refused where that would be too late.
TEST_F(Reads, InAPipelineWaitOrAreRefused) {
  regions_.lab().Lag("postgresql", "b1", "100ms");
  Connection reader = regions_.Wrapped("b1", Waiting);
  const Scope scope;
  Write("piped");
  ASSERT_EQ(reader.EnterPipelineMode(), 1);
  const auto send = [&] {
    return reader.SendQueryParams("SELECT value FROM posts WHERE key = 'piped'", 0, nullptr, nullptr, nullptr, nullptr,
                                  0);
  };
  ASSERT_EQ(send(), 1) << reader.ErrorMessage();
  ASSERT_EQ(send(), 1) << "what it waits for was waited for";
  ASSERT_EQ(reader.PipelineSync(), 1);
  for (int command = 0; command < 2; ++command) {
    EXPECT_EQ(PQntuples(reader.GetResult().get()), 1);
    EXPECT_EQ(reader.GetResult().get(), nullptr);
  }
  EXPECT_EQ(reader.GetResult().status(), PGRES_PIPELINE_SYNC);
  for (int command = 0; command < 2; ++command) ASSERT_EQ(send(), 1) << reader.ErrorMessage();
  Write("later");
  EXPECT_EQ(send(), 0);
  ASSERT_NE(reader.LastError(), nullptr);
  EXPECT_EQ(reader.LastError()->code, ErrorCode::kConfiguration);
  ASSERT_EQ(reader.PipelineSync(), 1);
  for (int command = 0; command < 2; ++command) {
    const Reply past = reader.GetResult();
    ASSERT_NE(past.error(), nullptr);
    EXPECT_EQ(past.error()->message_code, "AP514") << "they were sent before the later write (SHIM-48)";
    EXPECT_EQ(reader.GetResult().get(), nullptr);
  }
  EXPECT_EQ(reader.GetResult().status(), PGRES_PIPELINE_SYNC);
  EXPECT_EQ(reader.ExitPipelineMode(), 1);
}

TEST_F(Reads, WhatAWriteReturnsIsWaitedForToo) {  // SHIM-44
  Connection writer = regions_.Wrapped("a", [](Options& options) { options.store.WaitOnRead(true).Timeout(200ms); });
  const Scope scope(Lineage(*WriteId::Position(kStore, "0000000000000001.1", 1)));
  const Reply returning = writer.Exec("INSERT INTO posts VALUES ('returned', 'v') RETURNING value");
  ASSERT_NE(returning.error(), nullptr);
  EXPECT_FALSE(regions_.Shows("a", "returned"));
  EXPECT_EQ(writer.Exec("INSERT INTO posts VALUES ('plain', 'v')").status(), PGRES_COMMAND_OK);
}

TEST_F(Reads, WhatTellsOfTheCatalogueWaitsToo) {  // SHIM-44
  regions_.lab().Lag("postgresql", "b1", "100ms");
  Connection reader = regions_.Wrapped("b1", Waiting);
  const Scope scope;
  Must(writer_.Exec("CREATE TABLE described (one text)"));
  Must(reader.Prepare("described", "SELECT * FROM described", 0, nullptr));
  Must(writer_.Exec("ALTER TABLE described ADD COLUMN two text"));
  Must(reader.Prepare("altered", "SELECT two FROM described", 0, nullptr));
  Must(writer_.Exec("ALTER TABLE described ALTER COLUMN two TYPE varchar(9)"));
  const Reply changed = reader.DescribePrepared("altered");
  EXPECT_NE(std::string(PQresultErrorMessage(changed.get())).find("must not change result type"), std::string::npos);
  Must(writer_.Exec("DROP TABLE described"));
  regions_.lab().Partition("postgresql", "b1");
  Connection hurried = regions_.Wrapped("b1", [](Options& options) { options.store.WaitOnRead(true).Timeout(200ms); });
  Write("parted");
  for (const Reply& failed : {hurried.Prepare("late", "SELECT 1", 0, nullptr), hurried.DescribePrepared("late"),
                              hurried.DescribePortal("late")}) {
    ASSERT_NE(failed.error(), nullptr);
    EXPECT_EQ(failed.error()->code, ErrorCode::kTimedOut);
  }
}

TEST_F(Reads, OneThatWaitedInVainSendsNothingAndSaysWhy) {
  regions_.lab().Partition("postgresql", "b1");
  Connection reader = regions_.Wrapped("b1", [](Options& options) { options.store.WaitOnRead(true).Timeout(200ms); });
  const Scope scope;
  Write("parted");
  const Reply failed = reader.Exec("SELECT value FROM posts");
  ASSERT_NE(failed.error(), nullptr);
  EXPECT_EQ(failed.error()->code, ErrorCode::kTimedOut);
  EXPECT_NE(failed.error()->message.find("wait on read"), std::string::npos);
  EXPECT_EQ(failed.status(), PGRES_FATAL_ERROR);
  EXPECT_EQ(reader.SendQuery("SELECT value FROM posts"), 0);
  ASSERT_NE(reader.LastError(), nullptr);
  EXPECT_STREQ(reader.ErrorMessage(), reader.LastError()->message.c_str());
  SettingWords words;
  words.on_timeout = Policy::kProceed;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(reader.Exec("SELECT value FROM posts WHERE key = 'parted'").status(), PGRES_TUPLES_OK) << "it goes on";
}

// BAR-51: nothing is sent, as the connection, which is cut, does not say so.
TEST_F(Reads, WhatNamesTheStoreOtherwiseIsRefusedBeforeItIsSent) {
  Connection reader = regions_.Wrapped("b1", Waiting);
  Connection piped = regions_.Wrapped("b1", Waiting);
  ASSERT_EQ(piped.EnterPipelineMode(), 1);
  ASSERT_EQ(piped.SendQueryParams("SELECT 1", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  std::string other = kStore;
  other.insert(1, "_");
  const Lineage misspelt(WriteId::Make(other, "k", Ordered{"epoch", 1}).value());
  for (Connection* each : {&reader, &piped}) ASSERT_EQ(shutdown(PQsocket(each->get()), SHUT_RDWR), 0);
  const auto is_told = [](const Error* error) { return error != nullptr && error->message_code == "AP107"; };
  const auto refuses = [&] {
    const Reply failed = reader.Exec("SELECT value FROM posts");
    EXPECT_TRUE(is_told(failed.error()));
    for (Connection* each : {&reader, &piped}) {
      EXPECT_EQ(each->SendQueryParams("SELECT value FROM posts", 0, nullptr, nullptr, nullptr, nullptr, 0), 0);
      EXPECT_TRUE(is_told(each->LastError()));
    }
  };
  {
    const Scope scope(misspelt);
    refuses();
  }
  const Reading after(ReadingOptions{misspelt, false});
  refuses();
}

TEST_F(Reads, ASnapshotTakenBeforeIsNotWaitedFor) {
  Connection reader = regions_.Wrapped("b1", Waiting);
  EXPECT_EQ(reader.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ").status(), PGRES_COMMAND_OK);
  EXPECT_EQ(reader.Exec("SELECT count(*) FROM posts").status(), PGRES_TUPLES_OK);
  const Scope scope;
  Write("behind the snapshot");
  const Reply failed = reader.Exec("SELECT value FROM posts");
  ASSERT_NE(failed.error(), nullptr);
  EXPECT_NE(failed.error()->message.find("snapshot"), std::string::npos);
  EXPECT_EQ(reader.Exec("ROLLBACK").status(), PGRES_COMMAND_OK);
  const Reply found = reader.Exec("SELECT value FROM posts");
  EXPECT_EQ(PQntuples(found.get()), 1);
}

TEST_F(Reads, AReadingIsCoveredByTheServerThatAnswered) {
  const Scope scope;
  Write("1");
  ASSERT_TRUE(ComesTo(regions_, scope.lineage(), "1"));
  const Ordered written = PositionIn(scope.lineage());
  for (const char* server : {"a", "b1"}) {
    Connection reader = regions_.Wrapped(server);
    const Reading seen;
    EXPECT_EQ(PQntuples(reader.Exec("SELECT value FROM posts").get()), 1);
    const Ordered covering = PositionIn(seen.lineage());
    EXPECT_EQ(covering.epoch, written.epoch);
    EXPECT_GE(covering.counter, written.counter);
    (void)reader.Exec("BEGIN");
    EXPECT_EQ(PQntuples(reader.Exec("SELECT value FROM posts").get()), 1);
    EXPECT_EQ(reader.TransactionStatus(), PQTRANS_INTRANS) << "the application's transaction goes on";
    (void)reader.Exec("COMMIT");
    EXPECT_TRUE(seen.lineage().IsComplete({kStore}));
    ASSERT_EQ(reader.SendQuery("SELECT value FROM posts"), 1);
    while (reader.GetResult().get() != nullptr) continue;
    EXPECT_FALSE(seen.lineage().IsComplete({kStore})) << "asynchronous reads are not followed";
  }
  EXPECT_EQ(PositionIn(scope.lineage()), written) << "nothing is added to the scope unless asked for (SHIM-12)";
}

// EPOCH-31: a commit can be seen before it counts as replayed; until then it is only known to be received.
TEST_F(Reads, AReadingAtAStandbyCoversWhatItMayHaveBegunToReplay) {
  const Scope scope;
  (void)regions_.Ask("b1", "SELECT pg_wal_replay_pause()", "postgres");
  Write("received");
  const std::string flushed = regions_.Ask("a", "SELECT pg_current_wal_flush_lsn()");
  Until([&] { return regions_.Ask("b1", "SELECT pg_last_wal_receive_lsn() >= '" + flushed + "'") == "t"; });
  {
    Connection reader = regions_.Wrapped("b1");
    const Reading seen;
    EXPECT_EQ(reader.Exec("SELECT value FROM posts").status(), PGRES_TUPLES_OK);
    EXPECT_GE(PositionIn(seen.lineage()).counter, PositionIn(scope.lineage()).counter);
    EXPECT_TRUE(seen.lineage().IsComplete({kStore}));
  }
  (void)regions_.Ask("b1", "SELECT pg_wal_replay_resume()", "postgres");
}

TEST_F(Reads, AReadingAfterALineageWaitsForIt) {
  regions_.lab().Lag("postgresql", "b1", "100ms");
  Connection reader = regions_.Wrapped("b1");
  Lineage after;
  {
    const Scope scope;
    Write("after");
    after = scope.lineage();
  }
  ReadingOptions options;
  options.after = after;
  options.merge = true;
  const Scope scope;
  {
    const Reading seen(options);
    const Reply found = reader.Exec("SELECT value FROM posts WHERE key = 'after'");
    EXPECT_EQ(PQntuples(found.get()), 1);
  }
  EXPECT_TRUE(after <= scope.lineage());
}

// A row's own column, as a server without Antipode sees it.
std::string RestingBeside(const Regions& regions, const std::string& key) {
  return regions.Ask("a", "SELECT coalesce(antipode, '(none)') FROM posts WHERE key = '" + key + "'");
}

class Resting : public OnServers {
 protected:
  static void InColumn(Options& options) { options.store.RestIn("column"); }

  void Run(const std::string& statement) { Must(writer_.Exec(statement.c_str())); }
  void Insert(const std::string& key) { Run("INSERT INTO posts VALUES ('" + key + "', 'v')"); }

  Connection writer_ = regions_.Wrapped("a", InColumn);
  const Lineage other_ = *Lineage::Deserialize("1~elsewhere.key..7");
};

// SHIM-9, PROP-21: however the row is written.
TEST_F(Resting, TheLineageIsBesideTheRow) {
  const Scope scope(other_);
  Insert("alone");
  Run("BEGIN");
  Insert("in a transaction");
  Run("COMMIT");
  const char* const values[] = {"by parameters"};
  Must(writer_.ExecParams("INSERT INTO posts VALUES ($1, 'v')", 1, nullptr, values, nullptr, nullptr, 0));
  ASSERT_EQ(writer_.SendQuery("INSERT INTO posts VALUES ('sent', 'v')"), 1);
  while (writer_.GetResult().get() != nullptr) {
  }
  ASSERT_EQ(writer_.Exec("COPY posts (key, value) FROM STDIN").status(), PGRES_COPY_IN);
  ASSERT_EQ(writer_.PutCopyData("copied\tv\n", 9), 1);
  ASSERT_EQ(writer_.PutCopyEnd(), 1);
  while (writer_.GetResult().get() != nullptr) {
  }
  Run("DO $$ BEGIN INSERT INTO posts VALUES ('by a procedure', 'v'); END $$");
  for (const char* key : {"alone", "in a transaction", "by parameters", "sent", "copied", "by a procedure"}) {
    const Lineage beside = *Lineage::Deserialize(RestingBeside(regions_, key));
    EXPECT_TRUE(other_.IsCoveredBy(beside)) << key << ": " << beside.Serialize();
    EXPECT_TRUE(beside.IsComplete()) << key << ": " << beside.Serialize();
  }
  const Reply left = writer_.Exec("SELECT coalesce(current_setting('antipode.lineage', true), '')");
  EXPECT_STREQ(PQgetvalue(left.get(), 0, 0), "") << "nothing of ours stays on the connection (SHIM-5)";
  EXPECT_EQ(scope.lineage().OfStore(kStore).size(), 1U);
}

// SHIM-5: also where libpq itself gave the results.
TEST_F(Resting, NothingStaysOnAConnectionWhoseResultsLibpqItselfGave) {
  const Scope scope(other_);
  ASSERT_EQ(writer_.SendQuery("INSERT INTO posts VALUES ('taken', 'v')"), 1);
  while (PGresult* const result = PQgetResult(writer_.get())) PQclear(result);
  const Reply left = writer_.Exec("SELECT coalesce(current_setting('antipode.lineage', true), '')");
  EXPECT_STREQ(PQgetvalue(left.get(), 0, 0), "");
  EXPECT_TRUE(other_.IsCoveredBy(*Lineage::Deserialize(RestingBeside(regions_, "taken"))));
}

TEST_F(Resting, APipelineShowsNothingOfOurs) {
  const Scope scope(other_);
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  ASSERT_EQ(
      writer_.SendQueryParams("INSERT INTO posts VALUES ('piped', 'v')", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.SendQueryParams("SELECT 42", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.SendQueryParams("UPDATE posts SET value = 'w'", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.PipelineSync(), 1);
  Until([&] { return writer_.ConsumeInput() == 1 && writer_.IsBusy() == 0; });
  EXPECT_STREQ(PQcmdStatus(writer_.GetResult().get()), "INSERT 0 1");
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_STREQ(PQgetvalue(writer_.GetResult().get(), 0, 0), "42");
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_STREQ(PQcmdStatus(writer_.GetResult().get()), "UPDATE 1");
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  // One that fails ends the rest of its group, and the next group is whole again.
  ASSERT_EQ(
      writer_.SendQueryParams("INSERT INTO posts VALUES ('piped', 'v')", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.SendQueryParams("DELETE FROM posts", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(writer_.PipelineSync(), 1);
  ASSERT_EQ(writer_.SendQueryParams("INSERT INTO posts VALUES ('next', 'v')", 0, nullptr, nullptr, nullptr, nullptr, 0),
            1);
  ASSERT_EQ(writer_.PipelineSync(), 1);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_FATAL_ERROR);
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_ABORTED);
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  EXPECT_STREQ(PQcmdStatus(writer_.GetResult().get()), "INSERT 0 1");
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  ASSERT_EQ(writer_.ExitPipelineMode(), 1);
  for (const char* key : {"piped", "next"}) {
    EXPECT_TRUE(other_.IsCoveredBy(*Lineage::Deserialize(RestingBeside(regions_, key)))) << key;
  }
  EXPECT_TRUE(scope.lineage().IsComplete());
  EXPECT_EQ(scope.lineage().OfStore(kStore).size(), 1U);
}

// PROP-21: libpq itself throws away what is left of a command when the next one is waited for.
TEST_F(Resting, WhatWasNotReadToItsEndTakesNoLineageFromTheNextRow) {
  const std::vector<std::function<void()>> before = {
      [&] { ASSERT_EQ(writer_.SendQuery("SELECT 1"), 1); },
      [&] {
        ASSERT_EQ(writer_.SendQuery("SELECT 1; SELECT 2"), 1);
        ASSERT_EQ(writer_.GetResult().status(), PGRES_TUPLES_OK);
      },
      [&] { ASSERT_EQ(writer_.Exec("COPY posts (key, value) FROM STDIN").status(), PGRES_COPY_IN); },
      [&] {
        ASSERT_EQ(writer_.Exec("COPY (SELECT generate_series(1, 100000)) TO STDOUT").status(), PGRES_COPY_OUT);
        char* line = nullptr;
        ASSERT_GT(writer_.GetCopyData(&line, 0), 0);
        PQfreemem(line);
      },
  };
  for (std::size_t number = 0; number < before.size(); ++number) {
    const Scope scope(other_);
    before[number]();
    const std::string key = "behind " + std::to_string(number);
    Insert(key);
    const Lineage beside = *Lineage::Deserialize(RestingBeside(regions_, key));
    EXPECT_TRUE(other_.IsCoveredBy(beside)) << number << ": " << beside.Serialize();
    EXPECT_TRUE(ComesTo(regions_, scope.lineage(), key));
  }
}

// Without its lineage a row is not written: what keeps ours from being told is the write's own error, and has its
// words.
class Refusing : public Resting {
 protected:
  Refusing() {
    regions_.Ask("a", "REVOKE EXECUTE ON FUNCTION set_config(text, text, boolean) FROM PUBLIC", "postgres");
  }
  ~Refusing() override {
    regions_.Ask("a", "GRANT EXECUTE ON FUNCTION set_config(text, text, boolean) TO PUBLIC", "postgres");
  }

  static void IsOurRefusal(const Reply& reply) {
    ASSERT_EQ(reply.status(), PGRES_FATAL_ERROR);
    EXPECT_STREQ(PQresultErrorField(reply.get(), PG_DIAG_SQLSTATE), "42501");
  }
};

TEST_F(Refusing, EndsTheWriteThatIsWaitedFor) {
  const Scope scope(other_);
  IsOurRefusal(writer_.Exec("INSERT INTO posts VALUES ('alone', 'v')"));
  IsOurRefusal(writer_.Exec("DO $$ BEGIN INSERT INTO posts VALUES ('by a procedure', 'v'); END $$"));
  IsOurRefusal(writer_.Exec("COPY posts (key, value) FROM STDIN"));
  EXPECT_NE(std::string(writer_.ErrorMessage()).find("set_config"), std::string::npos) << writer_.ErrorMessage();
  Run("BEGIN");
  IsOurRefusal(writer_.Exec("INSERT INTO posts VALUES ('in a transaction', 'v')"));
  EXPECT_EQ(writer_.TransactionStatus(), PQTRANS_INERROR);
  Run("ROLLBACK");
  EXPECT_EQ(writer_.SendQuery("INSERT INTO posts VALUES ('sent', 'v')"), 0);
  EXPECT_NE(std::string(writer_.ErrorMessage()).find("set_config"), std::string::npos) << writer_.ErrorMessage();
  EXPECT_EQ(regions_.Ask("a", "SELECT count(*) FROM posts"), "0");
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_EQ(scope.lineage(), other_);
  Run("SELECT 1");
}

TEST_F(Refusing, IsTheFirstErrorOfAPipeline) {
  const Scope scope(other_);
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  for (const bool waits : {true, false}) {
    for (const char* key : {"first", "second"}) {
      const char* const values[] = {key};
      ASSERT_EQ(writer_.SendQueryParams("INSERT INTO posts VALUES ($1, 'v')", 1, nullptr, values, nullptr, nullptr, 0),
                1);
    }
    ASSERT_EQ(writer_.PipelineSync(), 1);
    if (!waits) Until([&] { return writer_.ConsumeInput() == 1 && writer_.IsBusy() == 0; });
    IsOurRefusal(writer_.GetResult());
    EXPECT_NE(std::string(writer_.ErrorMessage()).find("set_config"), std::string::npos) << writer_.ErrorMessage();
    EXPECT_EQ(writer_.GetResult().get(), nullptr);
    EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_ABORTED);
    EXPECT_EQ(writer_.GetResult().get(), nullptr);
    EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  }
  ASSERT_EQ(writer_.ExitPipelineMode(), 1);
  EXPECT_EQ(regions_.Ask("a", "SELECT count(*) FROM posts"), "0");
}

// The words of a transaction in error are those that libpq gives without us.
TEST_F(Resting, APipelinedWriteInATransactionInErrorHasItsWords) {
  const Scope scope(other_);
  Run("BEGIN");
  EXPECT_EQ(writer_.Exec("nonsense").status(), PGRES_FATAL_ERROR);
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  ASSERT_EQ(writer_.SendQueryParams("INSERT INTO posts VALUES ('1', 'v')", 0, nullptr, nullptr, nullptr, nullptr, 0),
            1);
  ASSERT_EQ(writer_.PipelineSync(), 1);
  const Reply refused = writer_.GetResult();
  ASSERT_EQ(refused.status(), PGRES_FATAL_ERROR);
  EXPECT_STREQ(PQresultErrorField(refused.get(), PG_DIAG_SQLSTATE), "25P02");
  EXPECT_STREQ(writer_.ErrorMessage(), PQresultErrorMessage(refused.get()));
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_PIPELINE_SYNC);
  ASSERT_EQ(writer_.ExitPipelineMode(), 1);
  Run("ROLLBACK");
  // A synchronization point may have committed something: what came before is covered, and nothing is pending
  // (SCOPE-25).
  EXPECT_EQ(scope.lineage().WithoutStore("blog-posts"), other_);
  EXPECT_TRUE(scope->pending().empty());
}

// What an earlier connection said last is no word of the next one.
TEST_F(Resting, AConnectionThatIsMadeAnewHasNoOlderWords) {
  const Scope scope(other_);
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  ASSERT_EQ(writer_.SendQueryParams("INSERT INTO posts VALUES ('1', 'v')", 0, nullptr, nullptr, nullptr, nullptr, 0),
            1);
  const std::string pid = std::to_string(PQbackendPID(writer_.get()));
  regions_.Ask("a", "SELECT pg_terminate_backend(" + pid + ")", "postgres");
  Until([&] { return regions_.Ask("a", "SELECT count(*) FROM pg_stat_activity WHERE pid = " + pid) == "0"; });
  (void)writer_.PipelineSync();
  Until([&] {
    (void)writer_.ConsumeInput();
    return writer_.Status() != CONNECTION_OK;
  });
  EXPECT_EQ(writer_.IsBusy(), 0);
  writer_.Reset();
  ASSERT_EQ(writer_.Status(), CONNECTION_OK);
  const Scope again(other_);
  ASSERT_EQ(writer_.SendQuery("INSERT INTO posts VALUES ('2', 'v')"), 1);
  EXPECT_EQ(writer_.GetResult().status(), PGRES_COMMAND_OK) << writer_.ErrorMessage();
  EXPECT_EQ(writer_.GetResult().get(), nullptr);
  EXPECT_TRUE(again->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, again.lineage(), "2"));
}

// PROP-21: the server forgets at a ROLLBACK TO what it was told behind the savepoint.
TEST_F(Resting, WhatTakesTheSettingBackTakesNoLineageFromTheNextRow) {
  for (const std::string back : {"ROLLBACK TO here", "ROLLBACK TO here; SELECT 1", "RESET ALL", "an error",
                                 "SELECT set_config('antipode.lineage', '', true)"}) {
    const Scope scope(other_);
    Run("BEGIN");
    Run("SAVEPOINT here");
    Insert("before");
    if (back == "an error") {
      EXPECT_EQ(writer_.Exec("UPDATE posts SET value = (1/0)::text").status(), PGRES_FATAL_ERROR);
      Run("ROLLBACK TO here");
    } else {
      Run(back);
    }
    Insert("behind");
    const Reply beside = writer_.Exec("SELECT antipode FROM posts WHERE key = 'behind'");
    EXPECT_EQ(PQgetvalue(beside.get(), 0, 0), other_.Serialize()) << back;
    Run("ROLLBACK");
    // Several statements in one text may have committed something: what came before is covered (SCOPE-25).
    const bool several = back.find(';') != std::string::npos;
    EXPECT_EQ(several ? scope.lineage().WithoutStore("blog-posts") : scope.lineage(), other_) << back;
    EXPECT_TRUE(scope->pending().empty());
  }
}

// An error is the write's own, and leaves nothing of ours.
TEST_F(Resting, AWriteThatFailsIsUndone) {
  const Scope scope(other_);
  Insert("once");
  const Lineage before = scope.lineage();
  EXPECT_EQ(writer_.Exec("INSERT INTO posts VALUES ('once', 'v')").status(), PGRES_FATAL_ERROR);
  EXPECT_NE(std::string(writer_.ErrorMessage()).find("duplicate key"), std::string::npos);
  EXPECT_EQ(scope.lineage(), before);
  EXPECT_TRUE(scope->pending().empty());
}

// SHIM-12, SHIM-14.
TEST_F(Resting, ReadingTakesWhatRestsBeside) {
  Lineage mine;
  {
    const Scope scope(other_);
    Insert("read");
    mine = scope.lineage();
  }
  Connection reader = regions_.Wrapped("b1", InColumn);
  EXPECT_TRUE(ComesTo(regions_, mine, "read"));
  {
    const Reading seen;
    Must(reader.Exec("SELECT * FROM posts WHERE key = 'read'"));
    EXPECT_TRUE(other_.IsCoveredBy(seen.lineage())) << seen.lineage().Serialize();
    EXPECT_TRUE(seen.lineage().IsComplete());
    EXPECT_EQ(seen.lineage().OfStore(kStore).size(), 1U);
  }
  const Reading seen;
  Must(reader.Exec("SELECT value FROM posts WHERE key = 'read'"));
  EXPECT_FALSE(seen.lineage().IsComplete()) << "the column was not read";
}

}  // namespace
}  // namespace antipode::postgresql::tests
