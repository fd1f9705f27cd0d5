// Recorded histories of PostgreSQL: its writes, and that something was read (HIST-27, HIST-28, HIST-31, HIST-36).
#include "history_test.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "antipode/messages.h"
#include "antipode/reading.h"
#include "antipode/scope.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

using testing::History;
using Json = History::Json;

constexpr char kSelect[] = "SELECT value FROM posts WHERE key = 'k'";
constexpr char kSelectOne[] = "SELECT value FROM posts WHERE key = $1";
constexpr char kFails[] = "SELECT value FROM nowhere";

class HistoryOfServers : public OnServers {
 protected:
  std::vector<Json> Reads() const { return history_.Lines("read", {"store", "key", "reads_from"}); }
  std::vector<Json> Gaps() const { return history_.Lines("gap", {"reason"}); }
  // What is told of so many reads.
  static std::vector<Json> Told(std::size_t count) {
    return std::vector<Json>(count, {{"store", kStore}, {"key", ""}, {"reads_from", "unattributed"}});
  }

  static void Set(const std::function<void(SettingWords&)>& change) {
    SettingWords words;
    change(words);
    ASSERT_TRUE(Configure(words).ok());
  }

  // The results of an asynchronous command to their end.
  static std::vector<ExecStatusType> Drain(Connection& client) {
    std::vector<ExecStatusType> statuses;
    for (;;) {
      const Reply reply = client.GetResult();
      if (reply.get() == nullptr) return statuses;
      statuses.push_back(reply.status());
      char* row = nullptr;
      while (reply.status() == PGRES_COPY_OUT && client.GetCopyData(&row, 0) > 0) PQfreemem(row);
    }
  }

  const History history_;
  const char* const values_[1] = {"k"};
};

TEST_F(HistoryOfServers, WritesAreThere) {
  Connection client = regions_.Wrapped("a");
  std::vector<Json> wanted;
  {
    const Scope scope;
    Must(client.Exec("INSERT INTO posts VALUES ('1', 'v')"));
    wanted.push_back({{"key", ""}, {"any_key", true}, {"identifier", scope.lineage().Serialize()}});
  }
  {
    const Scope scope;
    for (const char* statement : {"BEGIN", "INSERT INTO posts VALUES ('2', 'v')", "ROLLBACK"}) {
      Must(client.Exec(statement));
    }
    EXPECT_TRUE(scope.lineage().empty());
  }
  {
    const Scope scope;
    for (const char* statement : {"BEGIN", "INSERT INTO posts VALUES ('3', 'v')", "DELETE FROM posts", "COMMIT"}) {
      Must(client.Exec(statement));
    }
    wanted.push_back({{"key", ""}, {"any_key", true}, {"identifier", scope.lineage().Serialize()}});
  }
  EXPECT_EQ(history_.Lines("write", {"key", "any_key", "identifier"}), wanted);
  EXPECT_TRUE(Reads().empty());
  EXPECT_TRUE(Gaps().empty());
}

// HIST-36: by whatever way a read comes that is waited for.
TEST_F(HistoryOfServers, EachReadIsOfUnknownWrites) {
  Connection client = regions_.Wrapped("b1");
  const Scope scope;
  Must(client.Exec(kSelect));
  Must(client.ExecParams(kSelectOne, 1, nullptr, values_, nullptr, nullptr, 0));
  Must(client.Prepare("find", kSelectOne, 1, nullptr));
  Must(client.ExecPrepared("find", 1, values_, nullptr, nullptr, 0));
  Must(client.Prepare("", kSelectOne, 1, nullptr));
  Must(client.ExecPrepared("", 1, values_, nullptr, nullptr, 0));
  EXPECT_EQ(Reads(), Told(4));
  Must(client.Exec("SELECT p.value FROM posts p, pg_catalog.pg_class c WHERE p.value = c.relname"));
  Must(client.Exec("SELECT pg_size_pretty(1::bigint)"));  // nobody knows what a function reads
  Must(client.Exec("PREPARE there AS SELECT value FROM posts"));
  Must(client.Exec("EXECUTE there"));
  Must(client.ExecPrepared("there", 0, nullptr, nullptr, nullptr, 0));  // nor what was prepared by another way
  EXPECT_EQ(Reads(), Told(8));
}

TEST_F(HistoryOfServers, WhatReadsNoDataIsNoRead) {
  Connection client = regions_.Wrapped("a");
  const Scope scope;
  for (const char* statement :
       {"SELECT 1", "SHOW server_version", "BEGIN", "SET LOCAL application_name = 'x'", "COMMIT"}) {
    Must(client.Exec(statement));
  }
  Must(client.Exec("INSERT INTO posts VALUES ('k', 'v') RETURNING value"));
  EXPECT_EQ(client.Exec(kFails).status(), PGRES_FATAL_ERROR);
  EXPECT_EQ(client.ExecPrepared("nowhere", 0, nullptr, nullptr, nullptr, 0).status(), PGRES_FATAL_ERROR);
  EXPECT_EQ(client.SendQuery(kFails), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_FATAL_ERROR}));
  EXPECT_EQ(client.SendQuery(kFails), 1);
  Must(client.Exec("SELECT 1"));  // which throws that error away
  EXPECT_EQ(client.SendQuery(nullptr), 0);
  EXPECT_TRUE(Reads().empty());
  EXPECT_TRUE(Gaps().empty());
}

TEST_F(HistoryOfServers, ReadsOutsideOfScopesAreNotThere) {
  Connection client = regions_.Wrapped("a");
  Must(client.Exec(kSelect));
  ASSERT_EQ(client.SendQuery(kSelect), 1);
  EXPECT_EQ(Drain(client).size(), 1U);
  { const Scope scope(Lineage().MarkedIncomplete()); }
  EXPECT_TRUE(Reads().empty());
  EXPECT_TRUE(Gaps().empty());
}

TEST_F(HistoryOfServers, ReadsThatAreNotWaitedFor) {
  Connection client = regions_.Wrapped("a");
  Must(client.Exec("INSERT INTO posts VALUES ('k', 'v'), ('l', 'w')"));
  Must(client.Prepare("find", kSelectOne, 1, nullptr));
  const Scope scope;
  ASSERT_EQ(client.SendQuery(kSelect), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  ASSERT_EQ(client.SendQueryParams(kSelectOne, 1, nullptr, values_, nullptr, nullptr, 0), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  ASSERT_EQ(client.SendQueryPrepared("find", 1, values_, nullptr, nullptr, 0), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  EXPECT_EQ(Reads(), Told(3));

  ASSERT_EQ(client.SendPrepare("sent", kSelectOne, 1, nullptr), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_COMMAND_OK}));
  ASSERT_EQ(client.SendQueryPrepared("sent", 1, values_, nullptr, nullptr, 0), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  EXPECT_EQ(Reads(), Told(4));
}

// Whoever has the first row has read, however it ends.
TEST_F(HistoryOfServers, ReadsOfSingleRows) {
  Connection client = regions_.Wrapped("a");
  Must(client.Exec("INSERT INTO posts VALUES ('k', 'v')"));
  const Scope scope;
  ASSERT_EQ(client.SendQuery("SELECT 1 / (2 - n) FROM posts, generate_series(1, 2) AS n WHERE key = 'k'"), 1);
  ASSERT_EQ(client.SetSingleRowMode(), 1);
  EXPECT_EQ(client.GetResult().status(), PGRES_SINGLE_TUPLE);
  EXPECT_EQ(Reads(), Told(1));
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_FATAL_ERROR}));
  ASSERT_EQ(client.SendQuery(kSelect), 1);
  ASSERT_EQ(client.SetSingleRowMode(), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_SINGLE_TUPLE, PGRES_TUPLES_OK}));
  EXPECT_EQ(Reads(), Told(2));
}

// What the shim does not see the end of may have been read.
TEST_F(HistoryOfServers, ReadsWhoseResultsGoRoundTheShim) {
  Connection client = regions_.Wrapped("a");
  const Scope scope;
  const auto send = [&] { ASSERT_EQ(client.SendQuery(kSelect), 1); };
  send();
  while (PGresult* const result = PQgetResult(client.get())) PQclear(result);
  Must(client.Exec("SELECT 1"));
  EXPECT_EQ(Reads(), Told(1));
  send();
  Must(client.Exec("SELECT 1"));  // which throws it away
  EXPECT_EQ(Reads(), Told(2));
  send();
  client.Reset();
  EXPECT_EQ(Reads(), Told(3));
  send();
  PQfinish(client.Release());
  EXPECT_EQ(Reads(), Told(4));
  {
    Connection other = regions_.Wrapped("a");
    ASSERT_EQ(other.SendQuery(kSelect), 1);
  }
  EXPECT_EQ(Reads(), Told(5));
}

// In a pipeline what is read is told when it is sent, whatever comes of it.
TEST_F(HistoryOfServers, ReadsInAPipeline) {
  Connection client = regions_.Wrapped("a");
  const Scope scope;
  ASSERT_EQ(client.EnterPipelineMode(), 1);
  ASSERT_EQ(client.SendQueryParams(kSelectOne, 1, nullptr, values_, nullptr, nullptr, 0), 1);
  ASSERT_EQ(client.SendQueryParams("SELECT 1 FROM pg_class", 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  ASSERT_EQ(client.PipelineSync(), 1);
  for (int command = 0; command < 2; ++command) {
    EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  }
  EXPECT_EQ(client.GetResult().status(), PGRES_PIPELINE_SYNC);
  ASSERT_EQ(client.ExitPipelineMode(), 1);
  EXPECT_EQ(Reads(), Told(2));
}

TEST_F(HistoryOfServers, ReadsByCopyAndByACursor) {
  Connection client = regions_.Wrapped("a");
  const Scope scope;
  ASSERT_EQ(client.Exec("COPY posts (key) TO STDOUT").status(), PGRES_COPY_OUT);
  char* row = nullptr;
  while (client.GetCopyData(&row, 0) > 0) PQfreemem(row);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_COMMAND_OK}));
  ASSERT_EQ(client.SendQuery("COPY (SELECT key FROM posts) TO STDOUT"), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_COPY_OUT, PGRES_COMMAND_OK}));
  EXPECT_EQ(Reads(), Told(2));
  ASSERT_EQ(client.Exec("COPY posts (key, value) FROM STDIN").status(), PGRES_COPY_IN);
  ASSERT_EQ(client.PutCopyEnd(), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_COMMAND_OK}));
  for (const char* statement : {"BEGIN", "DECLARE c CURSOR FOR SELECT key FROM posts", "FETCH ALL FROM c", "COMMIT"}) {
    Must(client.Exec(statement));
  }
  EXPECT_EQ(Reads(), Told(3));
}

// HIST-26: while a write of the scope is under way, what it reads has a thread of its own, and comes before the write's
// end.
TEST_F(HistoryOfServers, ReadsInATransactionWithAWrite) {
  Connection client = regions_.Wrapped("a");
  {
    const Scope scope;
    for (const char* statement : {"BEGIN", "INSERT INTO posts VALUES ('k', 'v')", kSelect, "COMMIT", kSelect}) {
      Must(client.Exec(statement));
    }
  }
  EXPECT_EQ(Reads(), Told(2));
  std::vector<std::string> kinds;
  std::vector<std::string> threads;
  for (const Json& line : history_.Lines()) {
    const std::string kind = line.at("kind");
    if (kind != "read" && kind != "write") continue;
    kinds.push_back(kind);
    threads.push_back(line.at("scope"));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"read", "write", "read"}));
  ASSERT_EQ(threads.size(), 3U);
  EXPECT_EQ(threads[0], threads[1] + "+1");
  EXPECT_EQ(threads[2], threads[1]);
  EXPECT_EQ(history_.Decide(ANTIPODE_COMMAND).exit_code, 2);
}

// HIST-31: a store that is only written leaves no gap; one read leaves its own.
TEST_F(HistoryOfServers, WhereNothingIsReadTheHistoryIsWhole) {
  Connection client = regions_.Wrapped("a");
  std::string text;
  {
    const Scope scope;
    Must(client.Exec("INSERT INTO posts VALUES ('whole', 'v')"));
    text = OutgoingMessage().value().value_or("");
  }
  {
    const Scope scope = MessageScope(text);
    EXPECT_TRUE(Barrier(BarrierOptions().Timeout(30s)).satisfied());
  }
  const History::Decided whole = history_.Decide(ANTIPODE_COMMAND);
  EXPECT_EQ(whole.exit_code, 0) << whole.said;
  EXPECT_EQ(whole.gaps(), "[]");
  {
    const Scope scope;
    Must(client.Exec("SELECT value FROM posts WHERE key = 'whole'"));
  }
  const History::Decided decided = history_.Decide(ANTIPODE_COMMAND);
  EXPECT_EQ(decided.exit_code, 2) << decided.said;
  EXPECT_EQ(decided.said.at("gaps").size(), 1U) << decided.said;
}

// HIST-28: a position that no write has is that of the read.
TEST_F(HistoryOfServers, AMergedReadSaysWhatItCovers) {
  Set([](SettingWords& words) { words.auto_merge = true; });
  Connection client = regions_.Wrapped("a");
  std::vector<Json> covers;
  {
    const Scope scope;
    Must(client.Exec(kSelect));
    covers.push_back({{"covers", scope.lineage().Serialize()}});
    EXPECT_NE(scope.lineage(), Lineage());
  }
  Set([](SettingWords& words) { words.auto_merge = false; });
  {
    const Scope scope;
    const Reading seen;
    Must(client.Exec(kSelect));
    covers.push_back({{"covers", seen.lineage().Serialize()}});
    ASSERT_EQ(client.SendQuery(kSelect), 1);  // of which nobody asks what it covers
    EXPECT_EQ(Drain(client).size(), 1U);
    covers.push_back(Json::object());
  }
  EXPECT_EQ(history_.Lines("read", {"covers"}), covers);
}

TEST_F(HistoryOfServers, NothingOfAStatementIsThere) {
  Connection client = regions_.Wrapped("a");
  const char* const secret[] = {"secret"};
  {
    const Scope scope;
    Must(client.Exec("INSERT INTO posts VALUES ('a secret', ' from secret ')"));
    Must(client.Exec(
        "SELECT value FROM posts WHERE key = 'a secret' OR key = ' from secret ' OR key = $$ from secret $$"));
    Must(client.Exec("SELECT value FROM posts WHERE key = E'\\' from secret ' OR key = U&' from secret '"));
    Must(client.Exec("SELECT value FROM posts WHERE key = E'a'\n'\\' from secret '"));
    Must(client.Exec("SELECT value FROM posts WHERE key = '\\ from secret '"));
    Must(client.ExecParams(kSelectOne, 1, nullptr, secret, nullptr, nullptr, 0));
    ASSERT_EQ(client.SendQuery("SELECT value FROM posts WHERE key = ' from secret '"), 1);
    Drain(client);
  }
  EXPECT_EQ(Reads(), Told(6));
  for (const Json& line : history_.Lines()) EXPECT_EQ(line.dump().find("secret"), std::string::npos) << line;
}

// A read that waited in vain was not sent.
TEST_F(HistoryOfServers, WhatWasNotSentIsNoRead) {
  Connection writer = regions_.Wrapped("a");
  regions_.lab().Partition("postgresql", "b1");
  Connection reader = regions_.Wrapped("b1", [](Options& options) { options.store.WaitOnRead(true).Timeout(200ms); });
  {
    const Scope scope;
    Must(writer.Exec("INSERT INTO posts VALUES ('parted', 'v')"));
    EXPECT_NE(reader.Exec(kSelect).error(), nullptr);
    EXPECT_EQ(reader.SendQuery(kSelect), 0);
  }
  regions_.lab().Heal("postgresql");
  EXPECT_TRUE(Reads().empty());
}

TEST_F(HistoryOfServers, InDryRunToo) {
  Set([](SettingWords& words) { words.mode = Mode::kDryRun; });
  Connection client = regions_.Wrapped("b1");
  const Scope scope;
  Must(client.Exec(kSelect));
  EXPECT_EQ(client.Exec(kFails).status(), PGRES_FATAL_ERROR);
  ASSERT_EQ(client.SendQuery(kSelect), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  EXPECT_EQ(Reads(), Told(2));
  EXPECT_TRUE(Gaps().empty());
}

// HIST-31: what is off from the beginning, and what is switched off later, whatever is read then.
TEST_F(HistoryOfServers, WhereTheModeIsOffIsAGap) {
  const std::vector<Json> gap{{{"reason", "reads of " + std::string(kStore) + " are not recorded (its mode is off)"}}};
  Connection client = regions_.Wrapped("a");
  const Scope scope;
  Must(client.Exec(kSelect));
  EXPECT_TRUE(Gaps().empty());
  Set([](SettingWords& words) { words.mode = Mode::kOff; });
  EXPECT_EQ(Gaps(), gap);
  Must(client.Exec(kSelect));
  ASSERT_EQ(client.SendQuery(kSelect), 1);
  EXPECT_EQ(Drain(client), (std::vector<ExecStatusType>{PGRES_TUPLES_OK}));
  EXPECT_EQ(Gaps(), gap);
  EXPECT_EQ(Reads(), Told(1));
}

TEST_F(HistoryOfServers, OfAStoreThatIsOffIsAGap) {
  const Connection client = regions_.Wrapped("a", [](Options& options) { options.store.InMode(Mode::kOff); });
  const Scope scope;
  EXPECT_EQ(
      Gaps(),
      (std::vector<Json>{{{"reason", "reads of " + std::string(kStore) + " are not recorded (its mode is off)"}}}));
}

// What was prepared before is known when the recording begins.
TEST_F(HistoryOfServers, WhatWasPreparedBefore) {
  History::Record("");
  Connection client = regions_.Wrapped("a");
  Must(client.Prepare("find", kSelectOne, 1, nullptr));
  const Scope scope;
  Must(client.ExecPrepared("find", 1, values_, nullptr, nullptr, 0));
  History::Record(history_.folder().string());
  Must(client.ExecPrepared("find", 1, values_, nullptr, nullptr, 0));
  EXPECT_EQ(Reads(), Told(1));
}

}  // namespace
}  // namespace antipode::postgresql::tests
