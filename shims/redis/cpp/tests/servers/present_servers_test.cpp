// A pass speaks of the servers that are known when it is given (BAR-65).
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "region.h"

namespace antipode::redis {
namespace {

class PresentServersTest : public PostsTest {
 protected:
  bool IsAwaited(const std::string& server) {
    return Until([&] {
      const auto found = FindStore(kStore).value()->ServerAt(Url(server));
      return found && found->Awaited();
    });
  }
};

// The reader reads there behind the pass: the barrier waits there as well.
TEST_F(PresentServersTest, AReaderThatIsLedElsewhereWhileABarrierWaitsIsWaitedForThere) {
  Connection writer = Wrapped("a", StoreOptions(kStore).Replicas({Url("a")}));
  auto reader = Wrap(Connect("b1"), StoreOptions(kStore));
  ASSERT_TRUE(reader.ok());
  TheLab().Partition("redis", "b1");
  TheLab().Partition("redis", "b2");
  const Lineage written = Written(writer, "led", "while a barrier waits");
  std::future<BarrierResult> passed = BarrierAsync(written, BarrierOptions().Timeout(60s));
  ASSERT_TRUE(IsAwaited("b1"));
  reader->context()->tcp.port = TheLab().server("redis", "b2").port;
  ASSERT_EQ(reader->Reconnect(), REDIS_OK);
  TheLab().Heal("redis", "b1");
  ASSERT_TRUE(IsAwaited("b2"));
  EXPECT_EQ(passed.wait_for(0s), std::future_status::timeout);
  EXPECT_FALSE(Plain("b2").Get("led"));
  TheLab().Heal("redis", "b2");
  const BarrierResult result = passed.get();
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  EXPECT_EQ(reader->Command("GET led").text(), "while a barrier waits");
  const auto& servers = result.store(kStore).servers;
  const bool is_judged = std::any_of(servers.begin(), servers.end(), [](const ServerResult& each) {
    return each.address == Url("b2") && each.verdict == Verdict::kVisible;
  });
  EXPECT_TRUE(is_judged) << result.Explain();
}

}  // namespace
}  // namespace antipode::redis
