#include "region.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace antipode::redis {
namespace {

std::unique_ptr<lab::Lab> the_lab;

class EndsLab : public ::testing::Environment {
 public:
  void TearDown() override { the_lab.reset(); }
};

const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new EndsLab);

}  // namespace

lab::Lab& TheLab() {
  if (the_lab == nullptr) {
    the_lab = std::make_unique<lab::Lab>(lab::Words{"redis"}, lab::Options{2, {"2ms", "20ms"}, {}});
  }
  return *the_lab;
}

void RestoreOrder() {
  lab::Lab& lab = TheLab();
  for (const auto& [name, server] : lab.servers("redis")) {
    if (server.state == "frozen") lab.Thaw("redis", name);
    if (server.state == "stopped") lab.Restart("redis", name);
  }
  lab.Heal("redis");
  if (lab.primary("redis") != "a") {
    const std::string primary = lab.primary("redis");
    lab.Repoint("redis", "a", primary);
    lab.Promote("redis", "a", 0);
  }
  for (const auto& [name, server] : lab.servers("redis")) {
    if (name != "a" && server.source != "a") lab.Repoint("redis", name, "a");
  }
  lab.Lag("redis", "b1", "2ms");
  lab.Lag("redis", "b2", "20ms");
}

bool Until(const std::function<bool()>& condition, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

std::string Python(const std::string& program, const std::string& more) {
  const std::string file = "/tmp/antipode-redis-test-" + std::to_string(getpid()) + ".py";
  std::ofstream(file) << program;
  const std::string command = std::string(ANTIPODE_PYTHON) + " " + file + " " + Url("a") + " " + Url("b1") + " " +
                              Url("b2") + " '" + more + "' 2>&1";
  std::string said;
  FILE* const pipe = popen(command.c_str(), "r");
  char octets[4096];
  while (const std::size_t size = fread(octets, 1, sizeof octets, pipe)) said.append(octets, size);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << said;
  std::remove(file.c_str());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

std::string Url(const std::string& server) { return TheLab().server("redis", server).url; }

redisContext* Connect(const std::string& server) {
  const lab::Server found = TheLab().server("redis", server);
  redisContext* const context = redisConnectWithTimeout(found.host.c_str(), found.port, timeval{10, 0});
  if (context == nullptr || context->err != 0) throw std::runtime_error("no connection to " + server);
  redisSetTimeout(context, timeval{10, 0});
  return context;
}

Plain::Plain(const std::string& server) : context_(Connect(server)) {}

Reply Plain::Do(const std::vector<std::string>& words) {
  std::vector<const char*> arguments;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    arguments.push_back(word.data());
    sizes.push_back(word.size());
  }
  void* const reply = redisCommandArgv(context_.get(), static_cast<int>(words.size()), arguments.data(), sizes.data());
  return Reply(static_cast<redisReply*>(reply));
}

std::optional<std::string> Plain::Get(const std::string& key) {
  const Reply reply = Do({"GET", key});
  if (!reply || reply->type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string(reply.text());
}

Ordered PositionOf(const Lineage& lineage, const std::string& store) {
  const std::vector<WriteId> ids = lineage.OfStore(store);
  EXPECT_EQ(ids.size(), 1U) << lineage;
  if (ids.size() != 1 || ids.front().ordered() == nullptr) return {};
  EXPECT_TRUE(ids.front().is_position());
  return *ids.front().ordered();
}

void PostsTest::SetUp() { RestoreOrder(); }

Connection PostsTest::Wrapped(const std::string& server, Options options) {
  if (!options.replicas) options.Replicas({Url("b1"), Url("b2")});
  auto wrapped = Wrap(Connect(server), options);
  EXPECT_TRUE(wrapped.ok()) << (wrapped.ok() ? "" : wrapped.error().message);
  return std::move(wrapped).value();
}

Lineage PostsTest::Written(Connection& at, const std::string& key, const std::string& value) {
  Scope scope;
  const Reply reply = at.Command("SET %s %b", key.c_str(), value.data(), value.size());
  EXPECT_TRUE(reply && !reply.IsError()) << reply.text();
  return scope->lineage();
}

BarrierResult PostsTest::Look(const Lineage& lineage, std::chrono::milliseconds timeout) {
  return Barrier(lineage, BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed));
}

long long PostsTest::Questions(const std::string& server) {
  Plain plain(server);
  const Reply stats = plain.Do({"INFO", "commandstats"});
  std::istringstream lines{std::string(stats.text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("cmdstat_info:calls=", 0) == 0) return std::stoll(line.substr(19));
  }
  return 0;
}

}  // namespace antipode::redis
