// Reads of moments that are past (SHIM-48), and of servers that do not answer (SHIM-47).
#include <future>

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
    EXPECT_EQ(error->code, ErrorCode::kConfiguration);
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
