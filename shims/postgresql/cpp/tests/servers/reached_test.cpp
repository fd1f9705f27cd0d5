// Which servers a wrapped connection makes known: those that it really reaches, also when it is made anew (BAR-52).
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "../src/testing/relay.h"
#include "antipode/reading.h"
#include "antipode/settings.h"
#include "regions.h"
#include "targets.h"

namespace antipode::postgresql::tests {
namespace {

class ReachedServer : public OnServers {
 protected:
  ~ReachedServer() override { regions_.lab().Heal("postgresql"); }

  std::string Port(const std::string& server) const {
    return std::to_string(regions_.lab().server("postgresql", server).port);
  }

  // One that lists no replicas: readers use what it reaches.
  Connection Alone(const std::string& conninfo) const {
    Options options{StoreOptions(kStore).WaitOnRead(true).Timeout(20s)};
    Result<Connection> wrapped =
        Wrap(PQconnectdb((conninfo + " user=app dbname=app connect_timeout=10").c_str()), options);
    if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
    return std::move(*wrapped);
  }

  static bool IsKnown(const std::string& port) {
    const std::vector<std::string> known = FindStore(kStore).value()->replicas();
    const auto is_of_port = [&](const std::string& each) { return each.find(":" + port + "/") != std::string::npos; };
    return std::any_of(known.begin(), known.end(), is_of_port);
  }

  // One whose server is gone, and that reaches b1 when it is made anew.
  Connection ThatMoves() {
    auto relay = std::make_unique<testing::Relay>(regions_.lab().server("postgresql", "a").port);
    gone_ = std::to_string(relay->port());
    Connection reader = Alone("host=127.0.0.1,127.0.0.1 port=" + gone_ + "," + Port("b1"));
    EXPECT_TRUE(IsKnown(gone_));
    EXPECT_FALSE(IsKnown(Port("b1")));
    return reader;
  }

  // The server of before leaves while barriers come (BAR-62), and is named (BAR-54).
  void HasLeft(const std::string& port) {
    Connection writer = regions_.Wrapped("a", [&](Options& options) { options.store.Replicas({regions_.Url("a")}); });
    const Scope scope;
    Must(writer.Exec("INSERT INTO posts VALUES ('2', 'v')"));
    Until([&] {
      static_cast<void>(LookAt(scope.lineage(), 300ms));
      return !IsKnown(port);
    });
    const BarrierResult result = LookAt(scope.lineage(), 30s);
    EXPECT_TRUE(result.satisfied()) << result.Explain();
    ASSERT_EQ(result.store(kStore).LeftOut().size(), 1U) << result.Explain();
    EXPECT_NE(result.store(kStore).LeftOut().front().find(":" + port + "/"), std::string::npos) << result.Explain();
  }

  // What is written at the primary does not pass while the server that the connection reaches has not got it.
  void IsJudged(Connection& reader, const std::string& server) {
    regions_.lab().Partition("postgresql", server);
    Connection writer = regions_.Wrapped("a", [&](Options& options) { options.store.Replicas({regions_.Url("a")}); });
    const Scope scope;
    Must(writer.Exec("INSERT INTO posts VALUES ('1', 'v')"));
    EXPECT_FALSE(LookAt(scope.lineage(), 300ms).satisfied());
    regions_.lab().Heal("postgresql");
    EXPECT_TRUE(LookAt(scope.lineage(), 30s).satisfied());
    EXPECT_EQ(PQntuples(reader.Exec("SELECT value FROM posts").get()), 1);
  }

  std::string gone_;  // the port of the server that is gone
};

TEST_F(ReachedServer, WhatAResetLeadsToJoins) {
  Connection reader = ThatMoves();
  reader.Reset();
  ASSERT_EQ(reader.Status(), CONNECTION_OK) << reader.ErrorMessage();
  EXPECT_TRUE(IsKnown(Port("b1")));
  IsJudged(reader, "b1");
  HasLeft(gone_);
}

TEST_F(ReachedServer, WhatAResetByLibpqItselfLeadsToJoins) {
  Connection reader = ThatMoves();
  PQreset(reader.get());
  ASSERT_EQ(reader.Status(), CONNECTION_OK) << reader.ErrorMessage();
  Must(reader.Exec("SELECT 1"));
  EXPECT_TRUE(IsKnown(Port("b1")));
  IsJudged(reader, "b1");
  HasLeft(gone_);
}

// The address that is connected to tells servers apart, not the name that it is known by.
TEST_F(ReachedServer, ServersOfOneNameAreToldApartByTheirAddress) {
  const Connection first = Alone("host=db hostaddr=127.0.0.1 port=" + Port("a"));
  EXPECT_TRUE(IsKnown(Port("a")));
  const Result<Target> one = TargetOf(std::string("host=db hostaddr=10.0.0.1"));
  const Result<Target> other = TargetOf(std::string("host=db hostaddr=10.0.0.2"));
  EXPECT_NE(one->address, other->address);
  // Of a list, the one that was reached; by its name nobody would reach it.
  auto relay = std::make_unique<testing::Relay>(regions_.lab().server("postgresql", "a").port);
  const std::string gone = std::to_string(relay->port());
  relay.reset();
  Connection second =
      Alone("host=nowhere.invalid,nowhere.invalid hostaddr=127.0.0.1,127.0.0.1 port=" + gone + "," + Port("b1"));
  IsJudged(second, "b1");
}

// What the environment says counts where the words of a server do not; and what it says later changes no server of
// then.
TEST_F(ReachedServer, TheEnvironmentSaysWhatTheWordsDoNot) {
  ASSERT_EQ(setenv("PGPORT", Port("a").c_str(), 1), 0);
  const Result<Target> told = TargetOf(std::string("postgresql://app@127.0.0.1/app"));
  EXPECT_EQ(told->address, "postgresql://127.0.0.1:" + Port("a") + "/app");
  Options options{StoreOptions(kStore).Replicas({"postgresql://app@127.0.0.1/app"})};
  ASSERT_TRUE(Register(options).ok());
  ASSERT_EQ(setenv("PGPORT", "1", 1), 0);
  Connection writer = regions_.Wrapped("a", [&](Options& given) { given.store.Replicas({regions_.Url("a")}); });
  const Scope scope;
  Must(writer.Exec("INSERT INTO posts VALUES ('1', 'v')"));
  EXPECT_TRUE(LookAt(scope.lineage(), 20s).complete());
  unsetenv("PGPORT");
}

// A list of hosts is no server: which of them a reader's connection reaches nobody knows.
TEST_F(ReachedServer, SeveralHostsInOneAddressAreUnproven) {
  const std::string several = "postgresql://app@127.0.0.1:" + Port("a") + ",127.0.0.1:" + Port("b1") + "/app";
  Options options{StoreOptions(kStore).Replicas({several})};
  ASSERT_TRUE(Register(options).ok());
  Connection writer = regions_.Wrapped("a", [&](Options& given) { given.store.Replicas({regions_.Url("a")}); });
  const Scope scope;
  Must(writer.Exec("INSERT INTO posts VALUES ('1', 'v')"));
  const BarrierResult result = LookAt(scope.lineage(), 5s);
  EXPECT_FALSE(result.satisfied());
  EXPECT_EQ(result.store(kStore).kind, UnprovenKind::kUnfit) << result.Explain();
}

}  // namespace
}  // namespace antipode::postgresql::tests
