// Reads of moments that are past (SHIM-48), and of servers that do not answer (SHIM-47).
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "antipode/reading.h"
#include "antipode/settings.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

constexpr char kAll[] = "SELECT value FROM posts";

class PastReads : public OnServers {
 protected:
  ~PastReads() override { regions_.lab().Lag("postgresql", "b1", "2ms"); }

  static void Waiting(Options& options) { options.store.WaitOnRead(true).Timeout(20s); }

  void Write(const std::string& key) { Must(writer_.Exec(("INSERT INTO posts VALUES ('" + key + "', 'v')").c_str())); }

  // Fails where this is no refusal that says the way round.
  static void IsRefused(const Error* error, const std::string& way_round) {
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code, ErrorCode::kUnproven);
    EXPECT_EQ(error->message_code, "AP514");
    ASSERT_NE(error->result, nullptr);
    EXPECT_EQ(error->result->store(kStore).verdict, Verdict::kUnproven);
    EXPECT_EQ(error->result->store(kStore).kind, UnprovenKind::kOther);
    EXPECT_NE(error->message.find(way_round), std::string::npos) << error->message;
  }

  Connection writer_ = regions_.Wrapped("a");
  Connection reader_ = regions_.Wrapped("b1", Waiting);
};

TEST_F(PastReads, ACursorShowsNothingThatWasWrittenSinceItWasDeclared) {
  const Scope scope;
  Write("1");
  Must(reader_.Exec("BEGIN"));
  Must(reader_.Exec("DECLARE c CURSOR FOR SELECT value FROM posts"));
  EXPECT_EQ(PQntuples(reader_.Exec("FETCH ALL FROM c").get()), 1) << "what was there then may be fetched";
  Write("2");
  IsRefused(reader_.Exec("FETCH ALL FROM c").error(), "declare it again");
  IsRefused(reader_.Exec("FETCH ALL IN \"c\"").error(), "declare it again");
  EXPECT_EQ(reader_.SendQuery("FETCH 1 c"), 0);
  IsRefused(reader_.LastError(), "declare it again");
  EXPECT_EQ(reader_.TransactionStatus(), PQTRANS_INTRANS) << "nothing was sent";
  Must(reader_.Exec("CLOSE c"));
  Must(reader_.Exec("DECLARE c CURSOR FOR SELECT value FROM posts"));
  EXPECT_EQ(PQntuples(reader_.Exec("FETCH ALL FROM c").get()), 2);
  Must(reader_.Exec("ROLLBACK"));
}

TEST_F(PastReads, ACursorOfAnotherTransactionIsOlderThanTheReadingsLineage) {
  Must(reader_.Exec("BEGIN"));
  Must(reader_.Exec("DECLARE c CURSOR WITH HOLD FOR SELECT value FROM posts"));
  Must(reader_.Exec("COMMIT"));
  Must(reader_.Prepare("fetch", "FETCH ALL FROM c", 0, nullptr));
  const Scope scope;
  Write("1");
  const Reading reading(ReadingOptions{scope.lineage(), false});
  IsRefused(reader_.Exec("FETCH ALL FROM c").error(), "declare it again");
  IsRefused(reader_.ExecPrepared("fetch", 0, nullptr, nullptr, nullptr, 0).error(), "declare it again");
}

TEST_F(PastReads, ACursorThatNobodyKnowsOfIsRefused) {
  const Scope scope;
  Write("1");
  Must(reader_.Exec("BEGIN; DECLARE c CURSOR FOR SELECT value FROM posts"));
  IsRefused(reader_.Exec("FETCH ALL FROM c").error(), "declare it again");
  Must(reader_.Exec("ROLLBACK"));
}

TEST_F(PastReads, ASnapshotShowsWhatWasWaitedForWhenItWasTaken) {
  regions_.lab().Lag("postgresql", "b1", "100ms");
  const Scope scope;
  Must(reader_.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  Write("1");
  for (int again = 0; again < 2; ++again) {
    const Reply found = reader_.Exec(kAll);
    ASSERT_EQ(found.error(), nullptr) << found.error()->message;
    EXPECT_EQ(PQntuples(found.get()), 1) << "it is taken behind the wait";
  }
  Write("2");
  IsRefused(reader_.Exec(kAll).error(), "begin another one");
  Must(reader_.Exec("ROLLBACK"));
  EXPECT_EQ(PQntuples(reader_.Exec(kAll).get()), 2);
}

TEST_F(PastReads, PartsOfAResultShowNothingThatWasWrittenMeanwhile) {
  const Scope scope;
  for (const char* key : {"1", "2", "3"}) Write(key);
  ASSERT_EQ(reader_.SendQuery(kAll), 1);
  ASSERT_EQ(reader_.SetSingleRowMode(), 1);
  EXPECT_EQ(reader_.GetResult().status(), PGRES_SINGLE_TUPLE);
  Write("4");
  IsRefused(reader_.GetResult().error(), "send the statement again");
  EXPECT_EQ(PQntuples(reader_.Exec(kAll).get()), 4) << "what is left of it is thrown away";
  EXPECT_EQ(reader_.Exec("COPY posts TO STDOUT").status(), PGRES_COPY_OUT);
  char* data = nullptr;
  ASSERT_GT(reader_.GetCopyData(&data, 0), 0);
  PQfreemem(data);
  Write("5");
  EXPECT_EQ(reader_.GetCopyData(&data, 0), -2);
  IsRefused(reader_.LastError(), "send the statement again");
  EXPECT_EQ(PQntuples(reader_.Exec(kAll).get()), 5);
}

// SHIM-48: a result that was sent for before, and comes whole behind the write.
TEST_F(PastReads, AResultThatIsTakenLateShowsNothingThatWasWrittenMeanwhile) {
  const Scope scope;
  Write("1");
  for (const bool in_pipeline : {false, true}) {
    if (in_pipeline) {
      ASSERT_EQ(reader_.EnterPipelineMode(), 1);
    }
    ASSERT_EQ(reader_.SendQueryParams(kAll, 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
    if (in_pipeline) {
      ASSERT_EQ(reader_.PipelineSync(), 1);
    }
    Write(in_pipeline ? "3" : "2");
    IsRefused(reader_.GetResult().error(), "send the statement again");
    EXPECT_EQ(reader_.GetResult().get(), nullptr);
    if (in_pipeline) {
      EXPECT_EQ(reader_.GetResult().status(), PGRES_PIPELINE_SYNC);
      ASSERT_EQ(reader_.ExitPipelineMode(), 1);
    }
  }
  EXPECT_EQ(PQntuples(reader_.Exec(kAll).get()), 3);
}

TEST_F(PastReads, PoliciesSayWhatBecomesOfThem) {
  const Scope scope;
  Write("1");
  Must(reader_.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  Must(reader_.Exec(kAll));
  Write("2");
  SettingWords words;
  words.on_unproven = Policy::kProceed;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(PQntuples(reader_.Exec(kAll).get()), 1);
  words.on_unproven = Policy::kRaise;
  ASSERT_TRUE(Configure(words).ok());
  IsRefused(reader_.Exec(kAll).error(), "begin another one");
}

// A cursor that could not be declared again is the older one still.
TEST_F(PastReads, ADeclarationThatFailsMakesNoCursorNewer) {
  for (const bool sent : {false, true}) {
    const Scope scope;
    Write(sent ? "sent" : "run");
    Must(reader_.Exec("BEGIN"));
    Must(reader_.Exec("DECLARE c CURSOR FOR SELECT value FROM posts"));
    Must(reader_.Exec("SAVEPOINT here"));
    Write(sent ? "sent later" : "run later");
    if (sent) {
      ASSERT_EQ(reader_.SendQuery("DECLARE c CURSOR FOR SELECT value FROM posts"), 1);
      while (reader_.GetResult().get() != nullptr) continue;
    } else {
      EXPECT_EQ(reader_.Exec("DECLARE c CURSOR FOR SELECT value FROM posts").status(), PGRES_FATAL_ERROR);
    }
    Must(reader_.Exec("ROLLBACK TO here"));
    IsRefused(reader_.Exec("FETCH ALL FROM c").error(), "declare it again");
    IsRefused(reader_.Exec("MOVE FORWARD ALL IN c").error(), "declare it again");
    Must(reader_.Exec("ROLLBACK"));
  }
}

// What takes the snapshot of a transaction that keeps it, though it gives no data (SHIM-48).
class Snapshots : public PastReads {
 protected:
  using Take = std::function<void(Connection&)>;

  static std::vector<std::pair<std::string, Take>> All() {
    return {
        {"prepares", [](Connection& own) { (void)own.Prepare("before", kAll, 0, nullptr); }},
        {"prepares an unnamed one", [](Connection& own) { (void)own.Prepare("", kAll, 0, nullptr); }},
        {"sends one to be prepared", [](Connection& own) {
           ASSERT_EQ(own.SendPrepare("sent", kAll, 0, nullptr), 1);
           while (own.GetResult().get() != nullptr) continue;
         }},
        {"describes", [](Connection& own) { (void)own.DescribePrepared("known"); }},
        {"discards", [](Connection& own) { Must(own.Exec("DISCARD PLANS")); }},
        {"shows", [](Connection& own) { Must(own.Exec("SHOW server_version")); }},
        {"prepares by its text", [](Connection& own) { Must(own.Exec("PREPARE by_text AS SELECT value FROM posts")); }},
    };
  }
};

TEST_F(Snapshots, AreTakenByWhatGivesNoData) {
  for (const auto& [name, take] : All()) {
    Connection reader = regions_.Wrapped("b1", Waiting);
    Must(reader.Prepare("known", "INSERT INTO posts VALUES ('k', 'v')", 0, nullptr));
    Must(reader.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
    take(reader);
    const Scope scope;
    Write(name);
    IsRefused(reader.Exec(kAll).error(), "begin another one");
    Must(reader.Exec("ROLLBACK"));
    EXPECT_EQ(reader.Exec(kAll).error(), nullptr) << name;
  }
}

TEST_F(Snapshots, AreTakenBehindTheWaitByWhatIsPreparedInTheTransaction) {
  regions_.lab().Lag("postgresql", "b1", "100ms");
  const Scope scope;
  Must(reader_.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  Write("prepared");
  Must(reader_.Prepare("all", kAll, 0, nullptr));
  EXPECT_EQ(PQntuples(reader_.ExecPrepared("all", 0, nullptr, nullptr, nullptr, 0).get()), 1);
}

// The question for what a `Reading` is covered by comes behind the BEGIN, and takes the snapshot.
TEST_F(Snapshots, AreTakenByTheQuestionForACover) {
  const Reading reading;
  Must(reader_.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  const Scope scope;
  Write("later");
  IsRefused(reader_.Exec(kAll).error(), "begin another one");
}

TEST_F(Snapshots, OfATransactionThatLibpqItselfBeganAreNotKnown) {
  Must(reader_.Exec(kAll));
  PQclear(PQexec(reader_.get(), "BEGIN ISOLATION LEVEL REPEATABLE READ"));
  PQclear(PQexec(reader_.get(), kAll));
  const Scope scope;
  Write("later");
  IsRefused(reader_.Exec(kAll).error(), "begin another one");
}

TEST_F(Snapshots, OfAnotherSessionAreNotKnown) {
  PGconn* const other = regions_.Plain("b1");
  PQclear(PQexec(other, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
  const Reply exported(PQexec(other, "SELECT pg_export_snapshot()"));
  const std::string name = PQgetvalue(exported.get(), 0, 0);
  const Scope scope;
  Write("later");
  Must(reader_.Exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  Must(reader_.Exec(("SET TRANSACTION SNAPSHOT '" + name + "'").c_str()));
  IsRefused(reader_.Exec(kAll).error(), "begin another one");
  PQfinish(other);
}

// SHIM-47: the question is still open on the connection, and the next one would take its answer.
TEST_F(PastReads, AServerThatDoesNotAnswerEndsTheWaitAndTheConnection) {
  for (const bool in_pipeline : {false, true}) {
    Connection reader = regions_.Wrapped("b1", [](Options& options) { options.store.WaitOnRead(true).Timeout(1s); });
    const Scope scope;
    Write(in_pipeline ? "piped" : "plain");
    Must(reader.Exec("BEGIN"));
    Must(reader.Exec(kAll));
    if (in_pipeline) {
      ASSERT_EQ(reader.EnterPipelineMode(), 1);
    }
    regions_.lab().Freeze("postgresql", "b1");
    std::promise<void> ended;
    auto thawing = std::async(std::launch::async, [&, done = ended.get_future()] {
      const bool in_time = done.wait_for(30s) == std::future_status::ready;
      regions_.lab().Thaw("postgresql", "b1");
      return in_time;
    });
    if (in_pipeline) {
      EXPECT_EQ(reader.SendQueryParams(kAll, 0, nullptr, nullptr, nullptr, nullptr, 0), 0);
    } else {
      EXPECT_EQ(reader.Exec(kAll).status(), PGRES_FATAL_ERROR);
    }
    ended.set_value();
    EXPECT_TRUE(thawing.get()) << "it waited for the server";
    ASSERT_NE(reader.LastError(), nullptr);
    EXPECT_EQ(reader.LastError()->code, ErrorCode::kTimedOut) << reader.LastError()->message;
    ASSERT_NE(reader.LastError()->result, nullptr);
    EXPECT_FALSE(reader.LastError()->result->satisfied());
    EXPECT_EQ(reader.Status(), CONNECTION_BAD);
    reader.Reset();
    EXPECT_EQ(reader.Exec(kAll).status(), PGRES_TUPLES_OK) << reader.ErrorMessage();
  }
}

}  // namespace
}  // namespace antipode::postgresql::tests
