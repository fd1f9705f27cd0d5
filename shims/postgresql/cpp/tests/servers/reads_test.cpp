// Reads that wait, and that say what they depend on (spec SHIM-12, SHIM-13, BAR-50, BAR-51).
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

}  // namespace
}  // namespace antipode::postgresql::tests
