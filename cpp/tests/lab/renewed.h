// What a shim's own tests ask of the connections by which a server is asked, at a real one (BAR-69).
#ifndef ANTIPODE_TESTS_LAB_RENEWED_H_
#define ANTIPODE_TESTS_LAB_RENEWED_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "../src/engine/renewal_age.h"
#include "../src/store/server.h"
#include "../src/testing/relay.h"
#include "antipode/barrier.h"
#include "antipode/settings.h"
#include "antipode/store.h"

namespace antipode::lab {

// Connections are as old as they are behind it.
class Aging {
 public:
  Aging() = default;
  Aging(const Aging&) = delete;
  Aging& operator=(const Aging&) = delete;
  ~Aging() { Add(Duration::zero()); }
  void Add(Duration age) { renewal::more_age.store(age); }
};

// Expects that nobody stands still while the next connection to a server is opened, and that it is asked then.
// `port`: the server's; `register_at` has the store wait for it at another one; `write` leaves a write that nobody has
// asked for.
inline void ExpectTheNextOneBeside(const std::string& store, int port, const std::function<void(int)>& register_at,
                                   const std::function<Lineage()>& write) {
  constexpr Duration kLife = std::chrono::minutes(10);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  SettingWords words;
  words.reconnect = kLife;
  words.free_path_ttl = Duration::zero();
  ASSERT_TRUE(Configure(words).ok());
  testing::Relay relay(port);
  register_at(relay.port());
  const auto passes = [&] {
    const auto options = BarrierOptions().Timeout(std::chrono::minutes(1)).OnTimeout(Policy::kProceed);
    const BarrierResult result = Barrier(write(), options);
    EXPECT_TRUE(result.complete()) << result.Explain();
    return result.complete() && std::chrono::steady_clock::now() < deadline;
  };
  ASSERT_TRUE(passes());
  std::shared_ptr<Server> server;
  for (const auto& each : FindStore(store).value()->Servers()) {
    if (each->address().find(":" + std::to_string(relay.port())) != std::string::npos) server = each;
  }
  ASSERT_TRUE(server);
  Aging aging;
  while (true) {
    const std::uint64_t generation = server->impl().generation();
    const int opened = relay.opened();
    relay.Hold(true);
    aging.Add(kLife - kLife / 20);
    while (relay.opened() == opened) ASSERT_TRUE(passes()) << "none is opened beside the one that answers";
    for (int time = 0; time < 3; ++time) ASSERT_TRUE(passes()) << "whoever waits stands still";
    aging.Add(Duration::zero());
    relay.Hold(false);
    for (int time = 0; time < 100 && server->impl().generation() == generation; ++time) ASSERT_TRUE(passes());
    if (server->impl().generation() != generation && relay.opened() == opened + 1) break;
    aging.Add(kLife);  // the login took longer than it may: this one ends, and the thread that asks opens one
    ASSERT_TRUE(passes());
    aging.Add(Duration::zero());
  }
  EXPECT_TRUE(passes()) << "the next one does not answer";
}

}  // namespace antipode::lab

#endif  // ANTIPODE_TESTS_LAB_RENEWED_H_
