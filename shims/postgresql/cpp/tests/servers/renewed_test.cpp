// Our own connections are made anew beside those that answer (BAR-69).
#include "lab/renewed.h"

#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

class Renewed : public OnServers {};

TEST_F(Renewed, NobodyStandsStillWhileTheNextConnectionIsOpened_BAR_69) {
  Connection writer = regions_.Wrapped("a", [&](Options& options) { options.store.Replicas({regions_.Url("a")}); });
  const auto register_at = [](int port) {
    const std::string url = "postgresql://app@127.0.0.1:" + std::to_string(port) + "/app";
    ASSERT_TRUE(Register(StoreOptions(kStore).Replicas({url})).ok());
  };
  int number = 0;
  const auto write = [&] {
    const Scope scope;
    Must(writer.Exec(("INSERT INTO posts VALUES ('" + std::to_string(++number) + "', 'v')").c_str()));
    return scope->lineage();
  };
  lab::ExpectTheNextOneBeside(kStore, regions_.lab().server("postgresql", "b1").port, register_at, write);
}

}  // namespace
}  // namespace antipode::postgresql::tests
