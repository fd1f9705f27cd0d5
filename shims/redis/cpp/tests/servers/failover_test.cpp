// The failover fuzzer on Redis: a primary and two replicas behind slow links, in a lab a run (EPOCH-27).
//
// Time is scaled: marks come every 60 ms and failovers every few hundred ms. ANTIPODE_FUZZER_RUNS sets how many runs
// are played, ANTIPODE_FUZZER_SEED with which seed.
#include <cstdlib>
#include <iostream>
#include <thread>

#include "antipode/testing/failover.h"
#include "marks.h"
#include "region.h"

namespace antipode::redis {
namespace {

constexpr auto kMarkPeriod = 60ms;

class RedisDriver final : public testing::FailoverDriver {
 public:
  RedisDriver() : lab_({"redis"}, {2, {"2ms", "10ms"}, {}}) {
    SetMarkPeriod(kMarkPeriod);
    std::vector<std::string> urls;
    for (const auto& [name, server] : lab_.servers("redis")) {
      known_[name] = server;
      urls.push_back(server.url);
    }
    for (const auto& [name, server] : known_) {
      redisContext* const context = redisConnectWithTimeout(server.host.c_str(), server.port, timeval{5, 0});
      redisSetTimeout(context, timeval{5, 0});
      auto wrapped = Wrap(context, StoreOptions(store()).Replicas(urls));
      if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
      wrapped_.emplace(name, std::move(wrapped).value());
    }
  }
  ~RedisDriver() override { SetMarkPeriod(1000ms); }

  std::vector<std::string> servers() const override { return {"a", "b1", "b2"}; }
  std::string primary() const override { return lab_.primary("redis"); }
  std::vector<std::string> replicas() const override {
    std::vector<std::string> found;
    for (const auto& [name, server] : lab_.servers("redis")) {
      if (server.role == "replica") found.push_back(name);
    }
    return found;
  }
  std::string Address(const std::string& server) const override { return ":" + std::to_string(known_.at(server).port); }

  void Write(const std::string& server, const std::string& key, const std::string& value) override {
    Connection& connection = wrapped_.at(server);
    // hiredis meets a server's restart at the next command; as a service would, the driver then connects anew.
    Reply reply = connection.Command("SET %s %s", key.c_str(), value.c_str());
    if (!reply && connection.Reconnect() == REDIS_OK) {
      reply = connection.Command("SET %s %s", key.c_str(), value.c_str());
    }
    if (reply.text() != "OK") throw std::runtime_error("SET: " + std::string(reply.text()) + connection.errstr());
  }

  std::optional<bool> Shows(const std::string& server, const std::string& key, const std::string& value) override {
    const Reply reply = Ask(server, {"GET", key});
    if (!reply || reply.IsError()) return std::nullopt;
    return reply.text() == value;
  }

  std::optional<std::string> History(const std::string& server) override {
    const Reply reply = Ask(server, {"INFO"});
    if (!reply || reply.IsError()) return std::nullopt;
    const std::string info(reply.text());
    if (info.find("\nmaster_sync_in_progress:1") != std::string::npos ||
        info.find("\nloading:1") != std::string::npos) {
      return std::nullopt;
    }
    const auto word = [&](const std::string& name) {
      const auto at = info.find("\n" + name + ":");
      return at == std::string::npos ? std::string() : info.substr(at, info.find('\r', at) - at);
    };
    return word("run_id") + word("master_replid");
  }

  void SettleMarks() override { std::this_thread::sleep_for(3 * kMarkPeriod); }

  void Lag(const std::string& replica, std::chrono::milliseconds lag) override {
    lab_.Lag("redis", replica, std::to_string(lag.count()) + "ms");
  }
  void Cut(const std::string& replica, testing::Chance& chance) override {
    lab_.Partition("redis", replica, chance.Happens(0.5));
  }
  void Heal(const std::string& replica, bool wait) override { lab_.Heal("redis", replica, wait); }
  void RestartReplica(const std::string& replica, const std::function<void()>& write, bool wait) override {
    lab_.Do("redis", "save", {replica});
    write();
    lab_.Restart("redis", replica, "rdb", true, wait);
  }
  void Promote(const std::string& replica, const std::function<void()>& lost) override {
    if (lost) {
      lab_.PromoteLosing("redis", replica, lost);
    } else {
      lab_.Promote("redis", replica, 0);
    }
  }
  void Rejoin(const std::string& server, bool wait) override {
    lab_.Do("redis", "heal", nlohmann::json::array(), {{"wait", false}});
    lab_.Repoint("redis", server, primary(), wait);
  }
  bool CrashPrimary(const std::function<void()>& write) override {
    const std::string primary_now = primary();
    lab_.Do("redis", "save", {primary_now});
    write();
    lab_.Restart("redis", primary_now, "rdb", true);
    return true;
  }
  void Calm() override {
    lab_.Heal("redis");
    const std::string primary_now = primary();
    for (const auto& [name, server] : lab_.servers("redis")) {
      if (name == primary_now) continue;
      lab_.Lag("redis", name, "0ms");
      if (server.role != "replica") lab_.Repoint("redis", name, primary_now);
    }
  }
  void WaitCaughtUp() override {
    for (const std::string& name : replicas()) lab_.WaitCaughtUp("redis", name);
  }

 private:
  // Any thread: a connection of its own a question.
  Reply Ask(const std::string& server, const std::vector<std::string>& words) {
    const lab::Server& known = known_.at(server);
    redisContext* const context = redisConnectWithTimeout(known.host.c_str(), known.port, timeval{5, 0});
    if (context == nullptr) return {};
    if (context->err == 0) redisSetTimeout(context, timeval{5, 0});
    Plain plain(context);
    return context->err == 0 ? plain.Do(words) : Reply();
  }

  mutable lab::Lab lab_;
  std::map<std::string, lab::Server> known_;
  std::map<std::string, Connection> wrapped_;
};

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Failover, RandomFailoversShowNoFalsePass) {
  const int runs = static_cast<int>(Setting("ANTIPODE_FUZZER_RUNS", 2));
  const testing::Tally tally = testing::RunFailovers([](std::uint64_t) { return std::make_unique<RedisDriver>(); },
                                                     runs, Setting("ANTIPODE_FUZZER_SEED", 1),
                                                     [](const std::string& words) { std::cout << words << std::endl; });
  testing::FailoverBounds bounds;
  bounds.most_unproven = runs > 20 ? 0.02 : 0.1;
  const Result<void> checked = testing::CheckTally(tally, bounds);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  std::cout << tally.ToString() << std::endl;
}

}  // namespace
}  // namespace antipode::redis
