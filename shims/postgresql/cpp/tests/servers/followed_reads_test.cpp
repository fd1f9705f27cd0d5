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

// REC-6, REC-8, REC-12, REC-13: also where a read would wait, which none does here.
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
  EXPECT_EQ(record.at("kind"), "behind");
  EXPECT_EQ(record.count("confirmed"), 0U);
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

// REC-12: prepared, by parameters, and not waited for; in a transaction.
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
      EXPECT_EQ(record.at("kind"), "behind") << record;
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

}  // namespace
}  // namespace antipode::postgresql::tests
