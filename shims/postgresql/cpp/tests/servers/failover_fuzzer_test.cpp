// The failover fuzzer on PostgreSQL: a primary and two standbys behind slow links, in a lab a run (EPOCH-27).
//
// ANTIPODE_FUZZER_RUNS sets how many runs are played, ANTIPODE_FUZZER_SEED with which seed.
#include <cstdlib>
#include <iostream>
#include <map>

#include "antipode/testing/failover.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

using PlainConnection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

class PostgresqlDriver final : public testing::FailoverDriver {
 public:
  explicit PostgresqlDriver(std::uint64_t seed) : chance_(seed) {
    for (const std::string& name : servers()) {
      addresses_[name] = ":" + std::to_string(regions_.lab().server("postgresql", name).port) + "/";
      urls_.push_back(regions_.Url(name));
      Wrapped(name);
    }
  }

  std::vector<std::string> servers() const override { return {"a", "b1", "b2"}; }
  std::string primary() const override { return regions_.lab().primary("postgresql"); }
  std::vector<std::string> replicas() const override {
    std::vector<std::string> found;
    for (const auto& [name, server] : regions_.lab().servers("postgresql")) {
      if (server.role == "replica") found.push_back(name);
    }
    return found;
  }
  std::string Address(const std::string& server) const override { return addresses_.at(server); }

  void Write(const std::string& server, const std::string& key, const std::string& value) override {
    const std::string insert = "INSERT INTO posts (key, value) VALUES ('" + key + "', '" + value + "')";
    for (int attempt = 0; attempt < 3; ++attempt) {
      Connection& client = Wrapped(server);
      // Where the server was started anew since this connection was used last, nothing is sent to it.
      if (client.Exec("SELECT 1").status() != PGRES_TUPLES_OK) continue;
      if (chance_.Happens(0.5)) {
        Must(client.Exec(insert.c_str()));
      } else {
        Must(client.Exec("BEGIN"));
        Must(client.Exec("SELECT count(*) FROM posts"));
        Must(client.Exec(insert.c_str()));
        Must(client.Exec("COMMIT"));
      }
      return;
    }
    throw std::runtime_error(server + " takes no writes");
  }

  std::optional<bool> Shows(const std::string& server, const std::string& key, const std::string& value) override {
    const auto found = Ask(server, "SELECT coalesce((SELECT value FROM posts WHERE key = '" + key + "'), '')");
    if (!found) return std::nullopt;
    return *found == value;
  }
  std::optional<std::string> History(const std::string& server) override {
    return Ask(server, "SELECT pg_postmaster_start_time()::text");
  }

  void Lag(const std::string& replica, std::chrono::milliseconds lag) override {
    regions_.lab().Lag("postgresql", replica, std::to_string(lag.count()) + "ms");
  }
  void Cut(const std::string& replica, testing::Chance& chance) override {
    regions_.lab().Partition("postgresql", replica, chance.Happens(0.5));
  }
  void Heal(const std::string& replica, bool wait) override { regions_.lab().Heal("postgresql", replica, wait); }
  void RestartReplica(const std::string& replica, const std::function<void()>& write, bool wait) override {
    const bool killed = chance_.Happens(0.5);
    if (killed) regions_.lab().Kill("postgresql", replica);
    write();
    regions_.lab().Restart("postgresql", replica, "", !killed, wait);
  }
  void Promote(const std::string& replica, const std::function<void()>& lost) override {
    if (lost) {
      regions_.lab().Do("postgresql", "promote", {replica}, {{"lose", "<callback>"}, {"wait", false}}, lost);
    } else {
      regions_.lab().Do("postgresql", "promote", {replica}, {{"lose", 0}, {"wait", false}});
    }
  }
  void Rejoin(const std::string& server, bool wait) override {
    regions_.lab().Do("postgresql", "heal", nlohmann::json::array(), {{"wait", false}});
    regions_.lab().Repoint("postgresql", server, primary(), wait);
  }
  // A crash of PostgreSQL loses nothing that was flushed: what was recorded has to be there again.
  bool CrashPrimary(const std::function<void()>& write) override {
    write();
    regions_.lab().Restart("postgresql", primary(), "", true, false);
    return true;
  }
  void Calm() override {
    regions_.lab().Do("postgresql", "heal", nlohmann::json::array(), {{"wait", false}});
    const std::string primary_now = primary();
    for (const auto& [name, server] : regions_.lab().servers("postgresql")) {
      if (name == primary_now) continue;
      regions_.lab().Lag("postgresql", name, "0ms");
      if (server.role != "replica") regions_.lab().Repoint("postgresql", name, primary_now);
    }
  }
  void WaitCaughtUp() override {
    for (const std::string& name : replicas()) regions_.lab().WaitCaughtUp("postgresql", name);
  }

 private:
  Connection& Wrapped(const std::string& server) {
    const auto found = wrapped_.find(server);
    if (found != wrapped_.end()) {
      if (found->second.Status() == CONNECTION_OK) return found->second;
      wrapped_.erase(found);
    }
    PGconn* const plain = regions_.Plain(server);
    if (chance_.Happens(0.3)) PQclear(PQexec(plain, "SET synchronous_commit = off"));
    Result<Connection> wrapped = Wrap(plain, StoreOptions(store()).Replicas(urls_));
    if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
    return wrapped_.emplace(server, std::move(*wrapped)).first->second;
  }

  // Any thread: a connection of its own a question.
  std::optional<std::string> Ask(const std::string& server, const std::string& statement) const {
    const std::string url = "postgresql://app@127.0.0.1" + addresses_.at(server) + "app?connect_timeout=5";
    const PlainConnection plain(PQconnectdb(url.c_str()), PQfinish);
    const Reply reply(PQexec(plain.get(), statement.c_str()));
    if (reply.status() != PGRES_TUPLES_OK || PQntuples(reply.get()) != 1) return std::nullopt;
    return std::string(PQgetvalue(reply.get(), 0, 0));
  }

  mutable Regions regions_;
  testing::Chance chance_;
  std::map<std::string, std::string> addresses_;
  std::vector<std::string> urls_;
  std::map<std::string, Connection> wrapped_;
};

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(FailoverFuzzer, RandomFailoversShowNoFalsePass) {
  const int runs = static_cast<int>(Setting("ANTIPODE_FUZZER_RUNS", 2));
  const testing::Tally tally = testing::RunFailovers(
      [](std::uint64_t seed) { return std::make_unique<PostgresqlDriver>(seed); }, runs,
      Setting("ANTIPODE_FUZZER_SEED", 3), [](const std::string& words) { std::cout << words << std::endl; });
  testing::FailoverBounds bounds;
  bounds.most_unproven = runs > 20 ? 0.02 : 0.1;
  // The position is what the log has made durable behind the commit: a timeline may end between the two.
  bounds.most_rash = 0.01;
  const Result<void> checked = testing::CheckTally(tally, bounds);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  std::cout << tally.ToString() << std::endl;
}

}  // namespace
}  // namespace antipode::postgresql::tests
