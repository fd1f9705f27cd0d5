// Servers that may lose what they have, in a crash (SHIM-45).
#include "antipode/settings.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

class Fitness : public OnServers {
 protected:
  ~Fitness() override {
    for (const auto& [server, setting] : switched_) Set(server, setting, "on");
  }

  void SwitchOff(const std::string& server, const std::string& setting) {
    switched_.emplace_back(server, setting);
    Set(server, setting, "off");
  }

  std::vector<std::pair<std::string, std::string>> switched_;

 private:
  void Set(const std::string& server, const std::string& setting, const std::string& value) {
    regions_.Ask(server, "ALTER SYSTEM SET " + setting + " = " + value, "postgres");
    regions_.Ask(server, "SELECT pg_reload_conf()", "postgres");
    Until([&] { return regions_.Ask(server, "SHOW " + setting) == value; });
  }
};

constexpr char kInsert[] = "INSERT INTO posts VALUES ('1', 'v')";

void IsRefused(const Result<Connection>& wrapped, const std::string& setting) {
  ASSERT_FALSE(wrapped.ok());
  EXPECT_EQ(wrapped.error().code, ErrorCode::kUnfitStore);
  EXPECT_NE(wrapped.error().message.find(setting + " = off"), std::string::npos) << wrapped.error().message;
  EXPECT_NE(wrapped.error().message.find("RelaxedDurability"), std::string::npos) << wrapped.error().message;
}

TEST_F(Fitness, AServerWithoutFsyncIsUnfit) {
  const lab::Lab lab({"postgresql"}, {1, {"0ms"}, {{"postgresql", {{"fsync", false}, {"alone", true}}}}});
  const std::string port = std::to_string(lab.server("postgresql", "a").port);
  IsRefused(Wrap(PQconnectdb(("postgresql://app@127.0.0.1:" + port + "/app").c_str()), {"alone"}), "fsync");
}

TEST_F(Fitness, WhatIsWrittenAtAnUnfitServerIsIncomplete) {
  SwitchOff("a", "full_page_writes");
  IsRefused(Wrap(regions_.Plain("a"), {kStore}), "full_page_writes");
  Connection wrapped = regions_.Wrapped("a", [](Options& options) { options.store.WhenUnfit(OnUnfit::kUnproven); });
  const Scope scope;
  Must(wrapped.Exec(kInsert));
  EXPECT_FALSE(scope.lineage().IsComplete({kStore}));
}

TEST_F(Fitness, WhoRebuildsServersThatCrashedSaysSo) {
  SwitchOff("a", "full_page_writes");
  SwitchOff("b1", "full_page_writes");
  Connection wrapped = regions_.Wrapped("a", [](Options& options) { options.RelaxedDurability(); });
  const Scope scope;
  Must(wrapped.Exec(kInsert));
  PositionIn(scope.lineage());
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "1"));
}

// Also where its setting changes while it is waited for.
TEST_F(Fitness, AStandbyThatMayLoseWhatItHasProvesNothing) {
  Connection wrapped = regions_.Wrapped("a");
  const Scope scope;
  Must(wrapped.Exec(kInsert));
  ASSERT_TRUE(ComesTo(regions_, scope.lineage(), "1"));
  SettingWords words;
  words.reconnect = 100ms;
  words.free_path_ttl = 0ms;
  ASSERT_TRUE(Configure(words).ok());
  SwitchOff("b1", "full_page_writes");
  const auto look = [&] {
    return Barrier(scope.lineage(),
                   BarrierOptions().Timeout(1s).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed));
  };
  Until([&] { return !look().satisfied(); });
  const BarrierResult result = look();
  EXPECT_EQ(result.store(kStore).kind, UnprovenKind::kUnfit) << result.Explain();
  EXPECT_NE(result.Explain().find("full_page_writes = off"), std::string::npos) << result.Explain();
}

}  // namespace
}  // namespace antipode::postgresql::tests
