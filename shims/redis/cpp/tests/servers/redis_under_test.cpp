#include "redis_under_test.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "marks.h"

extern char** environ;

namespace antipode::redis {
namespace {

constexpr auto kMarkPeriod = 200ms;
constexpr const char* kField = "value";  // values are a field of a hash, so that lineages rest beside them

class ByHand final : public testing::TransactionUnderTest {
 public:
  explicit ByHand(Connection& connection) : connection_(connection) {}

  void Read(const std::string& key) override {
    connection_.Command("WATCH %s", key.c_str());
    connection_.Command("HGET %s %s", key.c_str(), kField);
  }
  void Write(const std::string& key, const std::string& value) override {
    if (!std::exchange(wrote_, true)) connection_.Command("MULTI");
    const Reply reply = connection_.Command("HSET %s %s %s", key.c_str(), kField, value.c_str());
    testing::StoreUnderTest::Check(reply.text() == "QUEUED", "HSET");
  }
  void End(bool commits) {
    const char* const word = !wrote_ ? "UNWATCH" : commits ? "EXEC" : "DISCARD";
    const Reply reply = connection_.Command(word);
    testing::StoreUnderTest::Check(reply && !reply.IsError(), word);
  }

 private:
  Connection& connection_;
  bool wrote_ = false;
};

}  // namespace

RedisUnderTest::RedisUnderTest() {
  patience = 30s;
  brief = 200ms;
  rights_cure = "+info";
  unfit_cure = "Redis Cluster";
  RestoreOrder();
}

RedisUnderTest::~RedisUnderTest() { SetMarkPeriod(1000ms); }

Capabilities RedisUnderTest::capabilities() const {
  return Capabilities::Positions().Push(true).Tombstones(true).RestsIn({Rest::kField, Rest::kEnvelope}).MarkedBy(
      Marks::kInBand);
}

void RedisUnderTest::Begin() {
  SetMarkPeriod(kMarkPeriod);
  primary_ = "a";
  for (const char* server : {"b1", "b2", "a"}) Borrowed(*this, server);
}

void RedisUnderTest::Recover(bool /*spoiled*/) {
  free_.clear();
  RestoreOrder();
}

RedisUnderTest::Borrowed::Borrowed(RedisUnderTest& from, const std::string& server) : from_(from), server_(server) {
  {
    const std::lock_guard<std::mutex> lock(from_.mutex_);
    auto& free = from_.free_[server];
    if (!free.empty()) {
      connection_ = std::move(free.back());
      free.pop_back();
    }
  }
  if (connection_ == nullptr) {
    Options options(from_.name);
    options.Replicas({Url("b1"), Url("b2")}).RestIn("field");
    auto wrapped = Wrap(Connect(server), options);
    Check(wrapped.ok(), wrapped.ok() ? "" : wrapped.error().message);
    connection_ = std::make_unique<Connection>(std::move(wrapped).value());
  }
  if (connection_->err() != 0) connection_->Reconnect();
}

RedisUnderTest::Borrowed::~Borrowed() {
  const std::lock_guard<std::mutex> lock(from_.mutex_);
  from_.free_[server_].push_back(std::move(connection_));
}

void RedisUnderTest::Write(const std::string& key, const std::string& value) {
  const Borrowed connection(*this, primary_);
  // hiredis meets a server's restart at the next command; as a service would, the kit's store connects anew before it
  // writes.
  if (!connection->Command("PING")) connection->Reconnect();
  const Reply reply = connection->Command("HSET %s %s %s", key.c_str(), kField, value.c_str());
  Check(reply && reply->type == REDIS_REPLY_INTEGER, "HSET: " + std::string(reply.text()) + connection->errstr());
}

std::optional<std::string> RedisUnderTest::Look(const std::string& key, const std::string& at) {
  const Reply reply = Plain(at).Do({"HGET", key, kField});
  if (!reply || reply->type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string(reply.text());
}

testing::ReadUnderTest RedisUnderTest::Read(const std::string& key, const std::string& at) {
  const Borrowed connection(*this, at);
  const Reply reply = connection->Command("HGET %s %s", key.c_str(), kField);
  if (reply.error() != nullptr) return {std::nullopt, *reply.error()};
  Check(reply && !reply.IsError(), "HGET: " + std::string(reply.text()) + connection->errstr());
  if (reply->type == REDIS_REPLY_NIL) return {};
  return {std::string(reply.text()), std::nullopt};
}

void RedisUnderTest::Delete(const std::string& key) {
  const Borrowed connection(*this, primary_);
  Check(connection->Command("DEL %s", key.c_str())->integer == 1, "DEL");
}

void RedisUnderTest::RawWrite(const std::string& key, const std::string& value) {
  const Reply reply = Plain(primary_).Do({"HSET", key, kField, value});
  Check(reply && reply->type == REDIS_REPLY_INTEGER, "HSET without Antipode");
}

void RedisUnderTest::WriteNothing() {
  const Borrowed connection(*this, primary_);
  Check(connection->Command("DEL %s", NewKey("never-there").c_str())->integer == 0, "DEL of nothing");
}

void RedisUnderTest::Transaction(const std::function<bool(testing::TransactionUnderTest& transaction)>& work) {
  const Borrowed connection(*this, primary_);
  ByHand transaction(*connection.operator->());
  const bool commits = work(transaction);
  transaction.End(commits);
}

namespace {

testing::ReadUnderTest ReadOf(const Reply& reply) {
  if (reply.error() != nullptr) return {std::nullopt, *reply.error()};
  testing::StoreUnderTest::Check(reply && !reply.IsError(), "a read: " + std::string(reply.text()));
  if (reply->type == REDIS_REPLY_NIL) return {};
  return {std::string(reply.text()), std::nullopt};
}

class OneMore final : public testing::ClientUnderTest {
 public:
  explicit OneMore(Connection connection) : connection_(std::move(connection)) {}

  testing::WaysToRead Reads() override {
    return {{"Command",
             [this](const std::string& key) { return ReadOf(connection_.Command("HGET %s %s", key.c_str(), kField)); }},
            {"a script",
             [this](const std::string& key) {
               return ReadOf(connection_.Command("EVAL %s 1 %s %s", "return redis.call('HGET', KEYS[1], ARGV[1])",
                                                 key.c_str(), kField));
             }},
            {"a pipeline",
             [this](const std::string& key) {
               if (const auto refused = Append(key)) return *refused;
               return Next();
             }},
            {"MULTI", [this](const std::string& key) -> testing::ReadUnderTest {
               connection_.Append("MULTI");
               const auto refused = Append(key);
               connection_.Append("EXEC");
               testing::ReadUnderTest read;
               for (int reply = refused ? 1 : 0; reply < 3 && !read.error; ++reply) read = Next();
               return refused ? *refused : read;
             }}};
  }

 private:
  std::optional<testing::ReadUnderTest> Append(const std::string& key) {
    if (connection_.Append("HGET %s %s", key.c_str(), kField) == REDIS_OK) return std::nullopt;
    testing::StoreUnderTest::Check(connection_.refused() != nullptr, "the connection broke");
    return testing::ReadUnderTest{std::nullopt, *connection_.refused()};
  }

  // The next reply; of an EXEC's what its one read gave.
  testing::ReadUnderTest Next() {
    Reply reply;
    static_cast<void>(connection_.GetReply(&reply));
    const bool is_exec = reply && reply->type == REDIS_REPLY_ARRAY;
    if (!is_exec) return ReadOf(reply);
    if (reply->elements == 0) return {};
    return {std::string(reply->element[0]->str, reply->element[0]->len), std::nullopt};
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<testing::ClientUnderTest> RedisUnderTest::WrapClient(const std::string& server,
                                                                     std::optional<std::vector<std::string>> replicas,
                                                                     bool wait_on_read) {
  Options options(name);
  options.WaitOnRead(wait_on_read).RestIn("field");
  std::vector<std::string> urls;
  for (const std::string& each : replicas.value_or(std::vector<std::string>())) urls.push_back(Url(each));
  if (replicas) options.Replicas(urls);
  redisContext* const context = Connect(server);
  redisSetTimeout(context, timeval{60, 0});  // the wait's own deadline is to end it
  auto wrapped = Wrap(context, options);
  Check(wrapped.ok(), wrapped.ok() ? "" : wrapped.error().message);
  return std::make_unique<OneMore>(std::move(wrapped).value());
}

int RedisUnderTest::PortOf(const std::string& server) { return TheLab().server("redis", server).port; }

void RedisUnderTest::RegisterAt(const std::string& /*server*/, int port) {
  const Result<void> registered =
      Register(Options(StoreOptions(name).Replicas({"redis://127.0.0.1:" + std::to_string(port)})));
  Check(registered.ok(), registered.ok() ? "" : registered.error().message);
}

void RedisUnderTest::SetLag(const std::string& replica, std::chrono::nanoseconds lag) {
  TheLab().Lag("redis", replica, std::to_string(std::chrono::ceil<std::chrono::milliseconds>(lag).count()) + "ms");
}
void RedisUnderTest::Partition(const std::string& replica) { TheLab().Partition("redis", replica); }
void RedisUnderTest::Heal(const std::string& replica) { TheLab().Heal("redis", replica); }
void RedisUnderTest::Freeze(const std::string& server) { TheLab().Freeze("redis", server); }
void RedisUnderTest::Thaw(const std::string& server) { TheLab().Thaw("redis", server); }
void RedisUnderTest::Restart(const std::string& server) { TheLab().Restart("redis", server); }
void RedisUnderTest::Repoint(const std::string& replica, const std::string& source) {
  TheLab().Repoint("redis", replica, source);
}

void RedisUnderTest::Promote(const std::string& replica, const std::function<void()>& lost) {
  if (lost) {
    TheLab().PromoteLosing("redis", replica, lost);
  } else {
    TheLab().Promote("redis", replica, 0);
  }
  const std::string old = std::exchange(primary_, replica);
  if (old == "a") return;
  // Readers may use it: it follows the new one.
  TheLab().Do("redis", "heal", nlohmann::json::array(), {{"wait", false}});
  TheLab().Repoint("redis", old, replica);
}

void RedisUnderTest::WaitMarked(const Lineage& lineage) {
  const Ordered last = PositionOf(lineage, name);
  Plain plain(primary_);
  Until(
      [&] {
        return PositionOfMark(plain.Do({"HGET", "antipode:epochs", last.epoch}).text()).value_or(0) >= last.counter;
      },
      "a mark covers the write");
}

bool RedisUnderTest::WriteWithUnknownOutcome(const std::string& key, const std::string& value) {
  auto wrapped = Wrap(Connect(primary_), Options(name));
  Check(wrapped.ok(), "Wrap");
  wrapped->SetTimeout(timeval{0, 200000});
  TheLab().Freeze("redis", primary_);
  const Reply reply = wrapped->Command("HSET %s %s %s", key.c_str(), kField, value.c_str());
  TheLab().Thaw("redis", primary_);
  return !reply && wrapped->err() != 0;
}

bool RedisUnderTest::WriteRefused(const std::string& key) {
  const Borrowed connection(*this, primary_);
  Plain(primary_).Do({"SET", key, "no hash"});
  return connection->Command("HSET %s %s v", key.c_str(), kField).IsError();
}

Result<void> RedisUnderTest::WriteWithoutRights(const std::string& key, const std::string& value) {
  TheLab().Do("redis", "create_user", {"app", "secret"});
  const lab::Server server = TheLab().server("redis", primary_);
  redisContext* const context = Connect(primary_);
  Check(Reply(static_cast<redisReply*>(redisCommand(context, "AUTH app secret"))).text() == "OK", "AUTH");
  Options options(name);
  options.Url("redis://app:secret@" + server.host + ":" + std::to_string(server.port));
  auto wrapped = Wrap(context, options);
  if (!wrapped.ok()) return wrapped.error();
  const Reply reply = wrapped->Command("HSET %s %s %s", key.c_str(), kField, value.c_str());
  Check(reply && reply->type == REDIS_REPLY_INTEGER, "HSET: " + std::string(reply.text()));
  return {};
}

Result<void> RedisUnderTest::WrapUnfit() {
  std::string folder = "/tmp/antipode-cluster-XXXXXX";
  Check(mkdtemp(folder.data()) != nullptr, "a folder");
  const std::string socket = folder + "/s";
  std::vector<std::string> words = {
      "redis-server", "--port",       "0",    "--cluster-enabled", "yes",          "--save", "", "--dir",
      folder,         "--unixsocket", socket, "--logfile",         folder + "/log"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t server = 0;
  Check(posix_spawnp(&server, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0, "redis-server");
  // The file is there before anybody listens behind it.
  const bool listens = redis::Until([&] {
    redisContext* probe = redisConnectUnix(socket.c_str());
    const bool connected = probe != nullptr && probe->err == 0;
    if (probe != nullptr) redisFree(probe);
    return connected;
  });
  auto refused = Wrap(redisConnectUnix(socket.c_str()), {"cluster"});
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  for (const char* file : {"/s", "/log", "/nodes.conf"}) unlink((folder + file).c_str());
  rmdir(folder.c_str());
  Check(listens, "the server listens");
  if (!refused.ok()) return refused.error();
  return {};
}

}  // namespace antipode::redis
