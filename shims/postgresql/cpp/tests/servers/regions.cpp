#include "regions.h"

#include <cstdio>
#include <thread>

namespace antipode::postgresql::tests {

std::string RunCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += "' ";
  }
  FILE* const pipe = popen((line + "2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + line);
  std::string said;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe)) > 0;) said.append(part, got);
  if (pclose(pipe) != 0) throw std::runtime_error(line + ": " + said);
  return said;
}

void Until(const std::function<bool()>& condition, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the condition did not come true");
    std::this_thread::sleep_for(5ms);
  }
}

Regions::Regions(int replicas)
    : lab_({"postgresql"}, {replicas, replicas == 1 ? lab::Words{"3ms"} : lab::Words{"2ms", "5ms"},
                            {{"postgresql", {{"config", {{"max_prepared_transactions", "5"}}}}}}}),
      replicas_(replicas) {
  Ask("a", "CREATE TABLE posts (key text PRIMARY KEY, value text NOT NULL)");
  RunCommand({ANTIPODE_COMMAND, "init", kStore, "--at", Url("a", "postgres"), "--user", "app", "--set", "table=posts",
              "--run", "--yes"});
  for (const std::string& name : standbys()) {
    Until([&] { return Ask(name, "SELECT to_regclass('posts') IS NOT NULL") == "t"; });
  }
}

namespace {

// The shared lab; it ends with the tests, before the process does.
std::unique_ptr<Regions>& TheShared() {
  static std::unique_ptr<Regions> shared;
  return shared;
}

class EndsShared : public ::testing::Environment {
 public:
  void TearDown() override { TheShared().reset(); }
};

}  // namespace

Regions& Regions::Shared() {
  static ::testing::Environment* const ends = ::testing::AddGlobalTestEnvironment(new EndsShared);
  (void)ends;
  if (!TheShared()) TheShared() = std::make_unique<Regions>();
  return *TheShared();
}

void Regions::RenewShared() { TheShared().reset(); }

void Must(const Reply& reply) {
  const ExecStatusType status = reply.status();
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return;
  if (reply.error() != nullptr) throw std::runtime_error(reply.error()->message);
  throw std::runtime_error(std::string("a statement failed: ") + PQresultErrorMessage(reply.get()));
}

std::vector<std::string> Regions::standbys() const {
  std::vector<std::string> names;
  for (int number = 1; number <= replicas_; ++number) names.push_back("b" + std::to_string(number));
  return names;
}

std::string Regions::Url(const std::string& server, const std::string& user) const {
  return "postgresql://" + user + "@127.0.0.1:" + std::to_string(lab_.server("postgresql", server).port) + "/app";
}

PGconn* Regions::Plain(const std::string& server, const std::string& user) const {
  PGconn* const connection = PQconnectdb((Url(server, user) + "?connect_timeout=10").c_str());
  if (PQstatus(connection) == CONNECTION_OK) return connection;
  const std::string words = PQerrorMessage(connection);
  PQfinish(connection);
  throw std::runtime_error(words);
}

Connection Regions::Wrapped(const std::string& server, const std::function<void(Options&)>& change,
                            const std::string& name) const {
  StoreOptions store(name);
  std::vector<std::string> urls;
  for (const std::string& each : standbys()) urls.push_back(Url(each));
  store.Replicas(urls);
  Options options(store);
  if (change) change(options);
  Result<Connection> wrapped = Wrap(Plain(server), options);
  if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
  return std::move(*wrapped);
}

std::string Regions::Ask(const std::string& server, const std::string& statement, const std::string& user) const {
  PGconn* const connection = Plain(server, user);
  const Reply reply(PQexec(connection, statement.c_str()));
  std::string value;
  const bool failed = reply.status() != PGRES_TUPLES_OK && reply.status() != PGRES_COMMAND_OK;
  if (failed) value = PQresultErrorMessage(reply.get());
  if (PQntuples(reply.get()) > 0) value = PQgetvalue(reply.get(), 0, 0);
  PQfinish(connection);
  if (failed) throw std::runtime_error(statement + ": " + value);
  return value;
}

bool Regions::Shows(const std::string& server, const std::string& key) const {
  return Ask(server, "SELECT count(*) FROM posts WHERE key = '" + key + "'") == "1";
}

OnServers::OnServers() { regions_.Ask("a", "DELETE FROM posts"); }

Ordered PositionIn(const Lineage& lineage) {
  const std::vector<WriteId> ids = lineage.OfStore(kStore);
  EXPECT_EQ(ids.size(), 1U) << lineage;
  EXPECT_TRUE(lineage.IsComplete()) << lineage;
  if (ids.size() != 1 || ids[0].ordered() == nullptr) return {};
  EXPECT_TRUE(ids[0].is_position());
  return *ids[0].ordered();
}

BarrierResult LookAt(const Lineage& lineage, std::chrono::milliseconds timeout) {
  const auto began = std::chrono::steady_clock::now();
  BarrierResult result = Barrier(lineage, BarrierOptions().Timeout(timeout).Stores({kStore}));
  EXPECT_LT(std::chrono::steady_clock::now() - began, timeout + 10s) << "past its deadline";
  return result;
}

::testing::AssertionResult ComesTo(Regions& regions, const Lineage& lineage, const std::string& key) {
  const BarrierResult result = LookAt(lineage, 30s);
  if (!result.satisfied()) return ::testing::AssertionFailure() << result.Explain();
  for (const std::string& name : regions.standbys()) {
    if (!regions.Shows(name, key)) return ::testing::AssertionFailure() << name << " does not show " << key;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace antipode::postgresql::tests
