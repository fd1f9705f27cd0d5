// Our own connections are made anew beside those that answer (BAR-69).
#include "lab/renewed.h"

#include "region.h"

namespace antipode::redis {
namespace {

class RenewedTest : public PostsTest {};

TEST_F(RenewedTest, NobodyStandsStillWhileTheNextConnectionIsOpened_BAR_69) {
  Connection writer = Wrapped("a", StoreOptions(kStore).Replicas({Url("a")}));
  const auto register_at = [](int port) {
    ASSERT_TRUE(Register(StoreOptions(kStore).Replicas({"redis://127.0.0.1:" + std::to_string(port)})).ok());
  };
  const int port = TheLab().server("redis", "b1").port;
  lab::ExpectTheNextOneBeside(kStore, port, register_at, [&] { return Written(writer, "renewed"); });
}

}  // namespace
}  // namespace antipode::redis
