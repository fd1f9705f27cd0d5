// Recorded histories of PostgreSQL: its writes, and that its reads are not there (HIST-27, HIST-28, HIST-31).
#include "history_test.h"

#include <string>
#include <vector>

#include "antipode/scope.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

using testing::History;
using Json = History::Json;
using HistoryOfServers = OnServers;

TEST_F(HistoryOfServers, WritesAreRecordedAndThatReadsAreNot) {
  const History history;
  Connection client = regions_.Wrapped("a");
  std::vector<Json> wanted;
  {
    const Scope scope;
    Must(client.Exec("INSERT INTO posts VALUES ('1', 'v')"));
    wanted.push_back({{"key", ""}, {"any_key", true}, {"identifier", scope.lineage().Serialize()}});
    Must(client.Exec("SELECT value FROM posts"));
  }
  {
    const Scope scope;
    for (const char* statement : {"BEGIN", "INSERT INTO posts VALUES ('2', 'v')", "ROLLBACK"}) Must(client.Exec(statement));
    EXPECT_TRUE(scope.lineage().empty());
  }
  {
    const Scope scope;
    for (const char* statement : {"BEGIN", "INSERT INTO posts VALUES ('3', 'v')", "DELETE FROM posts", "COMMIT"}) {
      Must(client.Exec(statement));
    }
    wanted.push_back({{"key", ""}, {"any_key", true}, {"identifier", scope.lineage().Serialize()}});
  }
  EXPECT_EQ(history.Lines("write", {"key", "any_key", "identifier"}), wanted);
  EXPECT_TRUE(history.Lines("read", {"key"}).empty());
  EXPECT_EQ(history.Lines("gap", {"reason"}),
            (std::vector<Json>{{{"reason", "reads of " + std::string(kStore) + " are not recorded (postgresql)"}}}));
  EXPECT_EQ(history.Decide(ANTIPODE_COMMAND).exit_code, 2);
}

}  // namespace
}  // namespace antipode::postgresql::tests
