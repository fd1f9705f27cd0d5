// Of the thread that marks epochs: a write of the application begins it, and may find no memory for it (BAR-61).
#include "marker.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>

namespace {

thread_local bool has_no_memory = false;

}  // namespace

// What the tests of this program call; only a thread that says so runs out of memory.
void* operator new(std::size_t size) {
  void* const made = has_no_memory ? nullptr : std::malloc(size > 0 ? size : 1);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }

namespace antipode::redis {
namespace {

int CountThreads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == "antipode-marks" ? 1 : 0;
  }
  return count;
}

bool BlocksSignals() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, SIGINT) != 0 || sigismember(&now, SIGTERM) != 0;
}

// Whether the write goes on.
bool WritesWithoutMemory(Marker& marker, const Ordered& position) {
  bool goes_on = true;
  has_no_memory = true;
  try {
    marker.Wrote(position);
  } catch (const std::bad_alloc&) {
    goes_on = false;
  }
  has_no_memory = false;
  return goes_on;
}

TEST(Marker, AWriteWithoutMemoryForTheThreadGoesOnAndTheNextOneBeginsIt) {
  Target nobody;
  nobody.host = "127.0.0.1";
  nobody.port = 1;
  const auto marker = Marker::Make("s", nobody, "marks");
  const Ordered position{"epoch", 7};
  EXPECT_TRUE(WritesWithoutMemory(*marker, position));
  EXPECT_FALSE(BlocksSignals());
  EXPECT_EQ(CountThreads(), 0);
  marker->Wrote(position);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (CountThreads() == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(CountThreads(), 1);
  marker->Stop();
}

}  // namespace
}  // namespace antipode::redis
