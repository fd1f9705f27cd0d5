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
  FollowedReads() { regions_.lab().Lag("postgresql", "b1", "500ms"); }
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

// Prepared, by parameters, and not waited for.
TEST_F(FollowedReads, InEveryWayThatLibpqHas) {
  Connection reader = regions_.Wrapped("b1");
  ASSERT_EQ(reader.Prepare("find", "SELECT value FROM posts WHERE key = $1", 1, nullptr).status(), PGRES_COMMAND_OK);
  const Recorded recorded;
  const Scope scope;
  Insert("k");
  const char* const values[] = {"k"};
  EXPECT_EQ(PQntuples(reader.ExecPrepared("find", 1, values, nullptr, nullptr, 0).get()), 0);
  EXPECT_EQ(PQntuples(reader.ExecParams("SELECT value FROM posts WHERE key = $1", 1, nullptr, values, nullptr, nullptr, 0).get()), 0);
  ASSERT_EQ(reader.SendQuery(Select("k").c_str()), 1);
  while (reader.GetResult().get() != nullptr) continue;
  for (const Json& record : recorded.Findings(3)) EXPECT_EQ(record.at("kind"), "behind");
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
