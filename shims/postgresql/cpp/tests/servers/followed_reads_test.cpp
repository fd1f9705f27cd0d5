// Dry-run's records of reads of a standby that lags (spec REC).
#include "recorded.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

using testing::Recorded;
using Json = Recorded::Json;

const std::string kHere = "servers/followed_reads_test.cpp:";

class FollowedReads : public OnServers {
 protected:
  FollowedReads() { regions_.lab().Lag("postgresql", "b1", "1s"); }
  ~FollowedReads() override { regions_.lab().Lag("postgresql", "b1", "2ms"); }

  void Insert(const std::string& key) {
    EXPECT_EQ(writer_.Exec(("INSERT INTO posts VALUES ('" + key + "', 'v')").c_str()).status(), PGRES_COMMAND_OK);
  }

  static std::string Select(const std::string& key) { return "SELECT value FROM posts WHERE key = '" + key + "'"; }

  Connection writer_ = regions_.Wrapped("a");
};

// REC-6, REC-8, REC-12 to REC-14, REC-22: also where a read would wait, which none does here.
TEST_F(FollowedReads, OfAStandbyThatLagsAreFound) {
  Connection reader = regions_.Wrapped("b1", [](Options& options) { options.store.WaitOnRead(true).Timeout(30s); });
  const Recorded recorded;
  const Scope scope;
  Insert("private-key");
  const std::string site = kHere + std::to_string(__LINE__ + 1);
  EXPECT_EQ(PQntuples(reader.Exec(Select("private-key").c_str()).get()), 0);
  EXPECT_EQ(reader.Exec("SHOW server_version").status(), PGRES_TUPLES_OK);
  EXPECT_EQ(reader.Exec("SELECT 1").status(), PGRES_TUPLES_OK);
  const Json record = recorded.Findings().front();
  EXPECT_EQ(record.at("kind"), "stale");
  EXPECT_EQ(record.at("confirmed"), "repeat");
  EXPECT_EQ(record.at("store"), kStore);
  EXPECT_EQ(record.at("store_kind"), "postgresql");
  EXPECT_EQ(record.at("site"), site);
  EXPECT_GT(std::stoull(record.at("wanted").at("counter").get<std::string>()), 0U);
  EXPECT_GT(record.at("visible_after").get<double>(), 0.05);
  EXPECT_LT(record.at("visible_after").get<double>(), 20.0);
  EXPECT_EQ(recorded.Counted("reads"), 1) << "a setting and an expression are no data";
  for (const Json& line : recorded.Lines()) EXPECT_EQ(line.dump().find("private-key"), std::string::npos);
  const auto [status, said] = recorded.Said(std::string(ANTIPODE_COMMAND) + " check");
  EXPECT_NE(said.find(site), std::string::npos) << status << said;
}

// REC-22, REC-23: prepared, by parameters, and not waited for; in a transaction; and what says the same again is
// behind.
TEST_F(FollowedReads, InEveryWayThatLibpqHas) {
  Connection reader = regions_.Wrapped("b1");
  ASSERT_EQ(reader.Prepare("find", "SELECT value FROM posts WHERE key = $1", 1, nullptr).status(), PGRES_COMMAND_OK);
  ASSERT_EQ(reader.Prepare("", "SELECT value FROM posts WHERE key = $1", 1, nullptr).status(), PGRES_COMMAND_OK);
  const std::string bigint(8, '\0');
  const Oid types[] = {25, 20};
  const int lengths[] = {0, 8};
  const int formats[] = {0, 1};
  for (const std::string written : {"k", "another"}) {
    const Recorded recorded;
    const Scope scope;
    Insert(written);
    const std::string key = "k";
    const char* const values[] = {key.c_str(), bigint.data()};
    const char* const by_key = "SELECT value FROM posts WHERE key = $1";
    const int there = written == key ? 0 : 1;
    EXPECT_EQ(PQntuples(reader.ExecPrepared("find", 1, values, nullptr, nullptr, 1).get()), there);
    EXPECT_EQ(PQntuples(reader.ExecPrepared("", 1, values, nullptr, nullptr, 0).get()), there);
    EXPECT_EQ(PQntuples(reader.ExecParams(by_key, 1, nullptr, values, nullptr, nullptr, 1).get()), there);
    EXPECT_EQ(PQntuples(reader
                            .ExecParams("SELECT value FROM posts WHERE key = $1 AND length(value) > $2", 2, types,
                                        values, lengths, formats, 0)
                            .get()),
              there);
    ASSERT_EQ(reader.SendQuery(Select(key).c_str()), 1);
    while (reader.GetResult().get() != nullptr) continue;
    ASSERT_EQ(reader.SendQueryPrepared("find", 1, values, nullptr, nullptr, 0), 1);
    ASSERT_EQ(reader.SetSingleRowMode(), 1);
    while (reader.GetResult().get() != nullptr) continue;
    Must(reader.Exec("BEGIN"));
    EXPECT_EQ(PQntuples(reader.Exec(Select(key).c_str()).get()), there);
    Must(reader.Exec("COMMIT"));
    for (const Json& record : recorded.Findings(7)) {
      EXPECT_EQ(record.at("kind"), there == 0 ? "stale" : "behind") << record;
    }
    Until([&] { return regions_.Shows("b1", written); });
  }
}

TEST_F(FollowedReads, OfWhatIsThereAreNoFinding) {
  const Recorded recorded;
  const Scope scope;
  Insert("there");
  EXPECT_EQ(PQntuples(writer_.Exec(Select("there").c_str()).get()), 1);
  EXPECT_EQ(writer_.Exec("SELECT value FROM nowhere").status(), PGRES_FATAL_ERROR);
  Until([&] { return recorded.Counted("followed_reads") == 1; });
  for (const Json& line : recorded.Lines()) EXPECT_EQ(line.at("kind"), "summary") << line;
}

// REC-22: what says something else of what is missing, of another table, of the clock, or of nothing that can be asked
// again.
class RepeatedReads : public FollowedReads {
 protected:
  // At both servers.
  void Have(const std::vector<std::string>& statements) {
    for (const std::string& each : statements) regions_.Ask("a", each, "postgres");
    const std::string end = regions_.Ask("a", "SELECT pg_current_wal_flush_lsn()");
    Until([&] { return regions_.Ask("b1", "SELECT pg_last_wal_replay_lsn() >= '" + end + "'") == "t"; });
  }

  Connection Reading(const std::string& more, const std::string& user = "app") {
    StoreOptions store(kStore);
    store.Replicas({regions_.Url("b1")});
    Result<Connection> wrapped = Wrap(PQconnectdb((regions_.Url("b1", user) + more).c_str()), Options(store));
    if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
    return std::move(*wrapped);
  }

  // What is recorded of this read, where one row is missing of the table `posts`; it is there then.
  std::string Recording(Connection& reader, const std::string& read) {
    const Recorded recorded;
    const Scope scope;
    Insert("missing-" + std::to_string(++missing_));
    EXPECT_EQ(reader.Exec(read.c_str()).status(), PGRES_TUPLES_OK) << read;
    return recorded.Findings().front().at("kind");
  }

  int missing_ = 0;
};

TEST_F(RepeatedReads, AreStaleOnlyWhereTheyWouldReturnOtherRows) {
  Have({"CREATE TABLE others (key text)", "GRANT SELECT ON others TO app",
        "CREATE VIEW clocked AS SELECT key, clock_timestamp() AS now FROM posts", "GRANT SELECT ON clocked TO app",
        "CREATE VIEW shuffled AS SELECT key FROM posts ORDER BY random()", "GRANT SELECT ON shuffled TO app",
        "CREATE VIEW long AS SELECT repeat('x', 1000) AS x FROM posts, generate_series(1, 100)",
        "GRANT SELECT ON long TO app",
        "INSERT INTO posts SELECT 'k' || number, 'v' FROM generate_series(1, 20) AS number"});
  Connection reader = regions_.Wrapped("b1");
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts WHERE key > 'm'"), "stale");
  EXPECT_EQ(Recording(reader, "SELECT count(*) FROM posts"), "stale");
  EXPECT_EQ(Recording(reader, "SELECT key FROM shuffled"), "stale") << "in whatever order";
  EXPECT_EQ(Recording(reader, "SELECT count(*) FROM others"), "behind") << "of another table";
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts WHERE key < 'm'"), "behind") << "of another row";
  EXPECT_EQ(Recording(reader, "SELECT * FROM clocked"), "behind") << "it differs by itself";
  EXPECT_EQ(Recording(reader, "SELECT x FROM long"), "behind") << "too long to be compared";
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts LIMIT 50"), "behind") << "REC-23";
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts ORDER BY key LIMIT 50"), "stale");
}

// REC-23: what the shim sees of a session that is another one than its own would be.
TEST_F(RepeatedReads, AreNotMadeOnceTheSessionHasChanged) {
  Connection reader = regions_.Wrapped("b1");
  Must(reader.Exec("BEGIN; SET LOCAL search_path = public; COMMIT"));
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts"), "behind");
  reader.Reset();
  EXPECT_EQ(Recording(reader, "SELECT key FROM posts"), "stale");
}

// REC-22: with the options and the encoding that the application has connected with, at the same address.
TEST_F(RepeatedReads, AreOfASessionThatBeganAlike) {
  Have({"CREATE SCHEMA tenant", "CREATE TABLE tenant.posts (key text)", "GRANT USAGE ON SCHEMA tenant TO app",
        "GRANT SELECT ON tenant.posts TO app"});
  Connection tenant = Reading("?options=-csearch_path%3Dtenant");
  EXPECT_EQ(Recording(tenant, "SELECT key FROM posts"), "behind") << "its own table of that name";
  Connection latin = Reading("?client_encoding=LATIN1");
  EXPECT_EQ(Recording(latin, "SELECT key FROM posts WHERE key <> '\xe9'"), "stale");
}

// REC-22: at one address there may be another server later.
TEST_F(RepeatedReads, AreOfOneServer) {
  Have({"CREATE TABLE counted (key text)", "GRANT ALL ON counted TO app"});
  const int port = regions_.lab().server("postgresql", "b1").port;
  const std::string own =
      std::to_string(regions_.lab().Do("postgresql", "context.toxiproxy.create", {"either", port}).get<int>());
  const std::string url = "postgresql://app@127.0.0.1:" + own + "/app";
  StoreOptions store(kStore);
  store.Replicas({url});
  Connection reader = std::move(*Wrap(PQconnectdb(url.c_str()), Options(store)));
  regions_.Ask("b1", "SELECT pg_wal_replay_pause()", "postgres");
  const Recorded recorded;
  const Scope scope;
  Must(writer_.Exec("INSERT INTO counted VALUES ('missing')"));
  EXPECT_EQ(PQntuples(reader.Exec("SELECT key FROM counted").get()), 0);
  const std::string scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'counted'";
  Until([&] { return regions_.Ask("b1", scans) == "2"; });  // the application's, and the first of ours
  Until([&] { return regions_.Ask("b2", "SELECT count(*) FROM counted") == "1"; });
  const std::string other = "127.0.0.1:" + std::to_string(regions_.lab().server("postgresql", "b2").port);
  regions_.lab().Do("postgresql", "context.toxiproxy._call", {"POST", "/proxies/either", {{"upstream", other}}});
  EXPECT_EQ(recorded.Findings().front().at("kind"), "behind");
  regions_.Ask("b1", "SELECT pg_wal_replay_resume()", "postgres");
}

// REC-13: a server that takes no connection of ours, and a read that takes too long, do the application no harm.
TEST_F(RepeatedReads, ThatCannotBeMadeChangeNothing) {
  Have({"CREATE ROLE once LOGIN CONNECTION LIMIT 1", "GRANT SELECT ON posts TO once",
        "CREATE VIEW slow AS SELECT key FROM posts, pg_sleep(1.5)", "GRANT SELECT ON slow TO app"});
  Connection once = Reading("", "once");
  EXPECT_EQ(Recording(once, "SELECT key FROM posts"), "behind");
  EXPECT_EQ(once.Exec("SELECT key FROM posts").status(), PGRES_TUPLES_OK);
  regions_.lab().Lag("postgresql", "b1", "5s");
  Connection reader = regions_.Wrapped("b1");
  EXPECT_EQ(Recording(reader, "SELECT key FROM slow"), "behind");
}

}  // namespace
}  // namespace antipode::postgresql::tests
