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
    const std::string value =
        Servers().Ask(at, "SELECT coalesce((SELECT value FROM posts WHERE key = '" + key + "'), '(none)')");
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

  void RawWrite(const std::string& key, const std::string& value) override {
    Servers().Ask(primary(), Upsert(key, value));
  }

  void WriteNothing() override { Delete("never there"); }

  void Transaction(const std::function<bool(testing::TransactionUnderTest& transaction)>& work) override {
    const Borrowed client(*this, primary());
    Must(client->Exec("BEGIN"));
    Open open(*client);
    Must(client->Exec(work(open) ? "COMMIT" : "ROLLBACK"));
  }

  testing::WaysToWrite CommitsInside() override {
    const auto way = [this](std::vector<std::string> texts) {
      return [this, texts = std::move(texts)](const std::string& key, const std::string& value) {
        const Borrowed client(*this, primary());
        for (const std::string& text : texts) {
          Must(client->Exec(text == "write" ? Upsert(key, value).c_str() : text.c_str()));
        }
      };
    };
    return {{"COMMIT AND CHAIN", way({"BEGIN", "write", "COMMIT AND CHAIN", "ROLLBACK"})},
            {"several statements", way({"BEGIN", "write", "COMMIT; BEGIN", "ROLLBACK"})}};
  }

  std::unique_ptr<testing::ClientUnderTest> WrapClient(const std::string& server,
                                                       std::optional<std::vector<std::string>> replicas,
                                                       bool wait_on_read) override {
    Servers().Ask(primary(),
                  "CREATE OR REPLACE FUNCTION kit_value(wanted text) RETURNS text LANGUAGE sql AS"
                  " 'SELECT value FROM posts WHERE key = wanted'",
                  "postgres");
    Until([&] { return Servers().Ask(server, "SELECT count(*) FROM pg_proc WHERE proname = 'kit_value'") == "1"; },
          "the function");
    return std::make_unique<OneMore>([=, this_name = name] {
      StoreOptions options = StoreOptions(this_name).WaitOnRead(wait_on_read).RestIn("column");
      std::vector<std::string> urls;
      for (const std::string& each : replicas.value_or(std::vector<std::string>())) urls.push_back(Servers().Url(each));
      if (replicas) options.Replicas(urls);
      Result<Connection> wrapped = Wrap(Servers().Plain(server), options);
      Check(wrapped.ok(), wrapped.ok() ? "" : wrapped.error().message);
      return std::make_unique<Connection>(std::move(*wrapped));
    });
  }
  int PortOf(const std::string& server) override { return Servers().lab().server("postgresql", server).port; }
  void RegisterAt(const std::string& /*server*/, int port) override {
    const StoreOptions options =
        StoreOptions(name).Replicas({"postgresql://app@127.0.0.1:" + std::to_string(port) + "/app"});
    Check(Register(options).ok(), "it is not registered");
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
        return Servers().Ask(primary(),
                             "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + pid) ==
               "1";
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
  static testing::ReadUnderTest ReadOf(const Reply& reply) {
    if (reply.error() != nullptr) return {std::nullopt, *reply.error()};
    Check(reply.status() == PGRES_TUPLES_OK || reply.status() == PGRES_SINGLE_TUPLE, PQresultErrorMessage(reply.get()));
    if (PQntuples(reply.get()) == 0) return {};
    return {std::string(PQgetvalue(reply.get(), 0, 0)), std::nullopt};
  }

  class OneMore final : public testing::ClientUnderTest {
   public:
    using Connects = std::function<std::unique_ptr<Connection>()>;
    explicit OneMore(Connects connects) : connects_(std::move(connects)), client_(connects_()) {}

    testing::WaysToRead Reads() override {
      const auto by = [this](const std::string& before, const std::string& behind) {
        return [this, before, behind](const std::string& key) {
          return ReadOf(client_->Exec((before + key + behind).c_str()));
        };
      };
      const std::string select = "SELECT value FROM posts WHERE key = '";
      return {{"Exec", by(select, "'")},
              {"a function", by("SELECT kit_value('", "')")},
              {"several statements", by("SELECT 1; " + select, "'")},
              {"SendQuery",
               [this, select](const std::string& key) -> testing::ReadUnderTest {
                 if (client_->SendQuery((select + key + "'").c_str()) == 0) {
                   return {std::nullopt, *client_->LastError()};
                 }
                 const testing::ReadUnderTest read = ReadOf(client_->GetResult());
                 Check(client_->GetResult().get() == nullptr, "one result");
                 return read;
               }},
              {"COPY", [this, select](const std::string& key) -> testing::ReadUnderTest {
                 const Reply reply = client_->Exec(("COPY (" + select + key + "') TO STDOUT").c_str());
                 if (reply.error() != nullptr) return {std::nullopt, *reply.error()};
                 char* line = nullptr;
                 Check(client_->GetCopyData(&line, 0) > 0, client_->ErrorMessage());
                 const std::string value(line, std::string(line).find('\n'));
                 PQfreemem(line);
                 return {value, std::nullopt};
               }}};
    }

    std::map<std::string, std::function<testing::ReadUnderTest()>> PastMoments(const std::string& key) override {
      const std::string select = "SELECT value FROM posts WHERE key = '" + key + "'";
      const auto open = [&](const std::vector<std::string>& texts) -> Connection* {
        more_.push_back(connects_());
        for (const std::string& text : texts) Must(more_.back()->Exec(text.c_str()));
        return more_.back().get();
      };
      Connection* const cursor = open({"BEGIN", "DECLARE kit CURSOR FOR " + select});
      Connection* const snapshot = open({"BEGIN ISOLATION LEVEL REPEATABLE READ", select});
      Connection* const parts = open({});
      Check(parts->SendQuery((select + " UNION ALL SELECT 'last'").c_str()) == 1 && parts->SetSingleRowMode() == 1,
            "sent");
      Check(parts->GetResult().status() == PGRES_SINGLE_TUPLE, "its first part");
      return {{"a cursor", [cursor] { return ReadOf(cursor->Exec("FETCH ALL FROM kit")); }},
              {"a snapshot", [snapshot, select] { return ReadOf(snapshot->Exec(select.c_str())); }},
              {"a result in parts", [parts] { return ReadOf(parts->GetResult()); }}};
    }

   private:
    const Connects connects_;
    std::unique_ptr<Connection> client_;
    std::vector<std::unique_ptr<Connection>> more_;
  };

  class Open final : public testing::TransactionUnderTest {
   public:
    explicit Open(Connection& client) : client_(client) {}
    void Read(const std::string& key) override { Must(client_.Exec(Select(key).c_str())); }
    void Write(const std::string& key, const std::string& value) override {
      Must(client_.Exec(Upsert(key, value).c_str()));
    }

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
