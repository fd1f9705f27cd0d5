// Transactions and pipelines that several scopes share, or another scope commits, against real servers (spec SCOPE-24).
#include <thread>

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string Insert(const std::string& key) { return "INSERT INTO posts (key, value) VALUES ('" + key + "', 'v')"; }

class Shared : public OnServers {
 protected:
  ExecStatusType Do(const std::string& text) { return writer_.Exec(text.c_str()).status(); }

  Connection writer_ = regions_.Wrapped("a");
};

// SCOPE-24: each scope in which a part of it ran has what becomes of it, whatever scope began it, or none.
TEST_F(Shared, ATransactionOfSeveralScopes) {
  const Scope outer;
  Do("BEGIN");
  Do(Insert("outer"));
  {
    const Scope inner;
    Do(Insert("inner"));
    EXPECT_FALSE(inner->lineage().IsComplete({kStore}));
    Do("COMMIT");
    EXPECT_TRUE(inner->pending().empty());
    EXPECT_TRUE(ComesTo(regions_, inner.lineage(), "inner"));
  }
  EXPECT_TRUE(outer->pending().empty());
  EXPECT_TRUE(ComesTo(regions_, outer.lineage(), "outer"));
  std::thread([&] { Do("BEGIN"), Do(Insert("outside any")); }).join();
  const Scope later;
  Do(Insert("later"));
  const Scope last;
  Do("SELECT 1");
  Do("COMMIT");
  EXPECT_TRUE(ComesTo(regions_, later.lineage(), "later"));
  EXPECT_TRUE(ComesTo(regions_, last.lineage(), "later")) << "it has committed it";
  const Scope undoes;
  Do("BEGIN");
  Do(Insert("undone"));
  {
    const Scope inner;
    Do(Insert("undone, too"));
    Do("ROLLBACK");
    EXPECT_TRUE(inner->pending().empty());
    EXPECT_TRUE(inner.lineage().empty());
  }
  EXPECT_TRUE(undoes.lineage().empty());
}

// Commits what only scopes wrote that have ended, or a scope of its own loses the connection at it (SCOPE-24).
TEST_F(Shared, WhoCommitsWhatAnotherScopeWroteHasItsPosition) {
  const auto write = [&](const std::string& statement) {
    const Scope ended;
    Do("BEGIN");
    Do(statement);
  };
  const Scope reads;
  write("SELECT count(*) FROM posts");
  Do("COMMIT");
  EXPECT_TRUE(reads.lineage().empty()) << "SCOPE-15";
  write("SELECT pg_sleep(0)");
  Do("COMMIT");
  EXPECT_TRUE(reads.lineage().empty()) << "the server says that nothing was written";
  write(Insert("failed"));
  Do("INSERT INTO nowhere VALUES (1)");
  Do("COMMIT");
  EXPECT_TRUE(reads->pending().empty() && reads.lineage().empty()) << "it was rolled back";
  write(Insert("committed"));
  Do("COMMIT");
  EXPECT_TRUE(ComesTo(regions_, reads.lineage(), "committed"));
  const Scope later;
  write(Insert("asynchronous"));
  ASSERT_EQ(writer_.SendQuery("COMMIT"), 1);
  EXPECT_FALSE(later.lineage().IsComplete({kStore}));
  Until([&] { return writer_.GetResult().get() == nullptr; });
  EXPECT_TRUE(ComesTo(regions_, later.lineage(), "asynchronous"));
  const Scope hears;
  {
    const Scope ended;
    ASSERT_EQ(writer_.SendQuery(Insert("sent").c_str()), 1);
  }
  Until([&] { return writer_.GetResult().get() == nullptr; });
  EXPECT_TRUE(ComesTo(regions_, hears.lineage(), "sent"));
  const Scope copies;
  {
    const Scope ended;
    ASSERT_EQ(Do("COPY posts (key, value) FROM STDIN"), PGRES_COPY_IN);
  }
  ASSERT_EQ(writer_.PutCopyData("copied\tv\n", 9), 1);
  EXPECT_FALSE(copies.lineage().IsComplete({kStore}));
  ASSERT_EQ(writer_.PutCopyEnd(), 1);
  Until([&] { return writer_.GetResult().get() == nullptr; });
  EXPECT_TRUE(ComesTo(regions_, copies.lineage(), "copied"));
  const Scope lost;
  write(Insert("lost"));
  regions_.Ask("a", "SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(writer_.get())) + ")");
  Do("COMMIT");
  EXPECT_FALSE(lost.lineage().IsComplete({kStore})) << "SCOPE-17";
}

TEST_F(Shared, APipelineThatAnotherScopeSyncsOrTakes) {  // SCOPE-24
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  {
    const Scope ended;
    ASSERT_EQ(writer_.SendQueryParams(Insert("piped").c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  }
  const Scope syncs;
  ASSERT_EQ(writer_.PipelineSync(), 1);
  EXPECT_FALSE(syncs->lineage().IsComplete({kStore}));
  const Scope takes;
  Until([&] { return writer_.GetResult().status() == PGRES_PIPELINE_SYNC; });
  EXPECT_TRUE(ComesTo(regions_, syncs.lineage(), "piped"));
  EXPECT_TRUE(ComesTo(regions_, takes.lineage(), "piped"));
  EXPECT_EQ(writer_.ExitPipelineMode(), 1);
}

TEST_F(Shared, APipelineOfSeveralScopes) {  // SCOPE-24
  const auto send = [&](const char* key) {
    ASSERT_EQ(writer_.SendQueryParams(Insert(key).c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  };
  ASSERT_EQ(writer_.EnterPipelineMode(), 1);
  const Scope outer;
  send("outer");
  const Scope inner;
  send("inner");
  EXPECT_FALSE(inner->lineage().IsComplete({kStore}));
  ASSERT_EQ(writer_.PipelineSync(), 1);
  Until([&] { return writer_.GetResult().status() == PGRES_PIPELINE_SYNC; });
  EXPECT_TRUE(ComesTo(regions_, inner.lineage(), "inner"));
  EXPECT_TRUE(ComesTo(regions_, outer.lineage(), "outer"));
  EXPECT_EQ(writer_.ExitPipelineMode(), 1);
}

}  // namespace
}  // namespace antipode::postgresql::tests
