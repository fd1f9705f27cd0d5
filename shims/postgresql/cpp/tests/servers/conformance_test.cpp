// The conformance kit on PostgreSQL, without exceptions (SHIM-18, SHIM-33).
#include "antipode/testing/conformance.h"

#include <map>
#include <mutex>
#include <thread>

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string Upsert(const std::string& key, const std::string& value) {
  return "INSERT INTO posts (key, value) VALUES ('" + key + "', '" + value +
         "') ON CONFLICT (key) DO UPDATE SET value = excluded.value";
}

std::string Select(const std::string& key) { return "SELECT value, antipode FROM posts WHERE key = '" + key + "'"; }

class PostgresqlUnderTest final : public testing::StoreUnderTest {
 public:
  PostgresqlUnderTest() {
    patience = 30s;
    rights_cure = "antipode init";
    unfit_cure = "wal_level";
  }

  Capabilities capabilities() const override {
    return Capabilities::Positions().BlockingWait(true).Tombstones(true).RestsIn({Rest::kNative}).MarkedBy(
        Marks::kNative);
  }

  std::string primary() const override { return Servers().lab().primary("postgresql"); }
  std::vector<std::string> replicas() const override { return {"b1", "b2"}; }

  void Begin() override {
    for (const char* server : {"a", "b1", "b2"}) Borrowed(*this, server);
  }

  void Recover(bool spoiled) override {
    free_.clear();
    if (spoiled) {
      Regions::RenewShared();
      return;
    }
    SetLag("b1", 2ms);
    SetLag("b2", 5ms);
    Servers().lab().Heal("postgresql");
  }

  // A connection is one thread's at a time; one that was lost is replaced, as a pool does.
  class Borrowed {
   public:
    Borrowed(PostgresqlUnderTest& from, const std::string& server) : from_(from), server_(server) {
      {
        const std::lock_guard<std::mutex> lock(from_.mutex_);
        auto& free = from_.free_[server];
        while (!free.empty() && !connection_) {
          connection_ = std::move(free.back());
          free.pop_back();
          (void)PQconsumeInput(connection_->get());
          if (connection_->Status() != CONNECTION_OK) connection_.reset();
        }
      }
      if (!connection_) connection_ = std::make_unique<Connection>(
            Servers().Wrapped(server, [](Options& options) { options.store.RestIn("column"); }, from_.name));
    }
    ~Borrowed() {
      if (connection_->Status() != CONNECTION_OK) return;
      const std::lock_guard<std::mutex> lock(from_.mutex_);
      from_.free_[server_].push_back(std::move(connection_));
    }
    Connection& operator*() const { return *connection_; }
    Connection* operator->() const { return connection_.get(); }

   private:
    PostgresqlUnderTest& from_;
    const std::string server_;
    std::unique_ptr<Connection> connection_;
  };

  void Write(const std::string& key, const std::string& value) override {
    const Borrowed client(*this, primary());
    Must(client->Exec(Upsert(key, value).c_str()));
  }

  std::optional<std::string> Look(const std::string& key, const std::string& at) override {
    const std::string value = Servers().Ask(at, "SELECT coalesce((SELECT value FROM posts WHERE key = '" + key + "'), '(none)')");
    if (value == "(none)") return std::nullopt;
    return value;
  }

  testing::ReadUnderTest Read(const std::string& key, const std::string& at) override {
    const Borrowed client(*this, at);
    const Reply reply = client->Exec(Select(key).c_str());
    if (reply.error() != nullptr) return {std::nullopt, *reply.error()};
    Must(reply);
    if (PQntuples(reply.get()) == 0) return {};
    return {std::string(PQgetvalue(reply.get(), 0, 0)), std::nullopt};
  }

  void Delete(const std::string& key) override {
    const Borrowed client(*this, primary());
    Must(client->Exec(("DELETE FROM posts WHERE key = '" + key + "'").c_str()));
  }

  void RawWrite(const std::string& key, const std::string& value) override { Servers().Ask(primary(), Upsert(key, value)); }

  void WriteNothing() override { Delete("never there"); }

  void Transaction(const std::function<bool(testing::TransactionUnderTest& transaction)>& work) override {
    const Borrowed client(*this, primary());
    Must(client->Exec("BEGIN"));
    Open open(*client);
    Must(client->Exec(work(open) ? "COMMIT" : "ROLLBACK"));
  }

  void SetLag(const std::string& replica, std::chrono::nanoseconds lag) override {
    Servers().lab().Lag("postgresql", replica,
                        std::to_string(std::chrono::ceil<std::chrono::milliseconds>(lag).count()) + "ms");
  }
  void Partition(const std::string& replica) override { Servers().lab().Partition("postgresql", replica); }
  void Heal(const std::string& replica) override { Servers().lab().Heal("postgresql", replica, false); }
  void Freeze(const std::string& server) override { Servers().lab().Freeze("postgresql", server); }
  void Thaw(const std::string& server) override { Servers().lab().Thaw("postgresql", server); }
  void Restart(const std::string& server) override {
    free_.clear();  // as a pool does that finds them lost
    Servers().lab().Restart("postgresql", server);
  }
  void Repoint(const std::string& replica, const std::string& source) override {
    Servers().lab().Repoint("postgresql", replica, source);
  }
  void Promote(const std::string& replica, const std::function<void()>& lost) override {
    lab::Lab& lab = Servers().lab();
    const std::string old = primary();
    if (lost) {
      lab.PromoteLosing("postgresql", replica, lost);
    } else {
      lab.Promote("postgresql", replica, 0);
    }
    if (old == "a") return;
    lab.Do("postgresql", "heal", nlohmann::json::array(), {{"wait", false}});
    lab.Repoint("postgresql", old, replica);
  }

  bool WriteWithUnknownOutcome(const std::string& key, const std::string& value) override {
    const Borrowed client(*this, primary());
    PGconn* const other = Servers().Plain(primary());
    PQclear(PQexec(other, "BEGIN; LOCK TABLE posts IN EXCLUSIVE MODE"));
    const std::string pid = std::to_string(PQbackendPID(client->get()));
    std::thread ends([&] {
      tests::Until([&] {
        return Servers().Ask(primary(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " +
                                            pid) == "1";
      });
      Servers().Ask(primary(), "SELECT pg_terminate_backend(" + pid + ")", "postgres");
    });
    const bool told = client->Exec(Upsert(key, value).c_str()).status() == PGRES_FATAL_ERROR;
    ends.join();
    PQfinish(other);
    return told;
  }

  bool WriteRefused(const std::string& key) override {
    const Borrowed client(*this, primary());
    return client->Exec(("INSERT INTO posts (key) VALUES ('" + key + "')").c_str()).status() == PGRES_FATAL_ERROR;
  }

  Result<void> WriteWithoutRights(const std::string& key, const std::string& value) override {
    Regions& servers = Servers();
    servers.Ask(primary(), "CREATE ROLE plain LOGIN", "postgres");
    servers.Ask(primary(), "GRANT SELECT, INSERT, UPDATE ON posts TO plain");
    {
      Result<Connection> client = Wrap(servers.Plain(primary(), "plain"), name);
      if (!client.ok()) return client.error();
      Must(client->Exec(Upsert(key, value).c_str()));
    }
    servers.Ask(primary(), "DROP OWNED BY plain", "postgres");
    servers.Ask(primary(), "DROP ROLE plain", "postgres");
    return {};
  }

  Result<void> WrapUnfit() override {
    const nlohmann::json config = {{"wal_level", "minimal"}, {"max_wal_senders", "0"}};
    lab::Lab alone({"postgresql"}, {1, {"0ms"}, {{"postgresql", {{"config", config}, {"alone", true}}}}});
    const int port = alone.server("postgresql", "a").port;
    const Result<Connection> refused =
        Wrap(PQconnectdb(("postgresql://app@127.0.0.1:" + std::to_string(port) + "/app").c_str()), {"alone"});
    if (!refused.ok()) return refused.error();
    return {};
  }

 private:
  class Open final : public testing::TransactionUnderTest {
   public:
    explicit Open(Connection& client) : client_(client) {}
    void Read(const std::string& key) override { Must(client_.Exec(Select(key).c_str())); }
    void Write(const std::string& key, const std::string& value) override { Must(client_.Exec(Upsert(key, value).c_str())); }

   private:
    Connection& client_;
  };

  static Regions& Servers() { return Regions::Shared(); }

  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<Connection>>> free_;
};

std::unique_ptr<testing::StoreUnderTest> MakePostgresql() { return std::make_unique<PostgresqlUnderTest>(); }

ANTIPODE_SHIM_CONFORMANCE(Postgresql, MakePostgresql);

}  // namespace
}  // namespace antipode::postgresql::tests
