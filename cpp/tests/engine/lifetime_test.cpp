// The thread that asks a server: forks, an idle server, shutdown.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/log_test.h"
#include "engine/waiters.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

// SCOPE-13.
TEST_F(LogTest, AForkedChildBeginsWithoutPollersAndProofs) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that begin in a forked child";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "AddressSanitizer (GCC 12) forks while other threads hold its allocator's locks: the child waits for them";
#endif
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  log_->Move(5);
  ASSERT_TRUE(Barrier(Upto(5)).satisfied());
  auto parked = BarrierAsync(Upto(6), Proceeding(60s));
  Until([&] { return store_->impl().parked() == 1; });
  const pid_t child = fork();
  if (child == 0) {
    bool good = !server_->impl().Holds("e1", 5) && store_->impl().parked() == 0;
    log_->applied = 7;
    good = good && Barrier(Upto(7), Proceeding(20s)).satisfied() &&
           BarrierAsync(Upto(7), Proceeding(20s)).get().satisfied();
    Shutdown();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(Barrier(Upto(5)).satisfied());
  log_->Move(6);
  EXPECT_TRUE(parked.get().satisfied());
}

TEST_F(LogTest, TheThreadEndsWhenNobodyWaits) {
  SetLinger(50ms);
  log_->Move(1);
  ASSERT_TRUE(Barrier(Upto(1)).satisfied());
  Until([&] { return !server_->impl().Asking(); });
  log_->Move(2);
  EXPECT_TRUE(Barrier(Upto(2), Proceeding(20s)).satisfied()) << "and begins again for the next";
  SetLinger(10s);
}

TEST_F(LogTest, ShutdownAnswersWhoWaitsAndABarrierAfterItBeginsAnew) {
  auto waiting = BarrierAsync(Upto(1), Proceeding(60s));
  std::thread blocked([&] { EXPECT_FALSE(Barrier(Upto(1), Proceeding(60s)).satisfied()); });
  Until([&] { return store_->impl().parked() == 2; });
  const TimePoint began = Clock::now();
  Shutdown();
  EXPECT_EQ(waiting.get().store("log").verdict, Verdict::kTimedOut);
  blocked.join();
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_FALSE(server_->impl().Asking());
  log_->Move(1);
  EXPECT_TRUE(Barrier(Upto(1), Proceeding(20s)).satisfied());
}

}  // namespace
}  // namespace antipode::testing
