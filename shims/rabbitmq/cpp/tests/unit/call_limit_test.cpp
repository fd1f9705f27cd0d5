// The thread that ends calls, where the system gives none.
#include "call_limit.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "antipode/logs.h"

namespace antipode::rabbitmq {
namespace {

using std::chrono::milliseconds;

// Whether the peer of this one sees its end in time.
bool Ends(int peer) {
  pollfd waited{peer, POLLIN, 0};
  return poll(&waited, 1, 10000) == 1;
}

rlim_t AddressSpace() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// In a child of its own, which has not got the thread yet; what it ends with.
int WithoutAThread() {
  std::string log;
  SetLogSink([&log](LogLevel, std::string_view line) { log += line; });
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit none = before;
  none.rlim_cur = AddressSpace() + (1 << 20);  // no room for a thread's stack
  setrlimit(RLIMIT_AS, &none);
  {
    const CallLimit unlimited(ends[0], milliseconds(1));
  }
  setrlimit(RLIMIT_AS, &before);
  if (log.find("no deadline") == std::string::npos) return 2;
  const CallLimit limited(ends[0], milliseconds(1));
  return Ends(ends[1]) ? 0 : 3;
}

// The log's sink is the application's: it may make a call of its own. What it ends with, or a signal where it never
// comes back.
int CallsFromTheSink() {
  alarm(30);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  bool came = false;
  SetLogSink([&came, socket = ends[0]](LogLevel, std::string_view) {
    const CallLimit inner(socket, milliseconds(60000));
    came = true;
  });
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit none = before;
  none.rlim_cur = AddressSpace() + (1 << 20);
  setrlimit(RLIMIT_AS, &none);
  {
    const CallLimit outer(ends[0], milliseconds(60000));
  }
  setrlimit(RLIMIT_AS, &before);
  return came ? 0 : 2;
}

void InAChild(int (*does)()) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space itself";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(does());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CallLimit, BeginsItsThreadWhenItCan) { InAChild(WithoutAThread); }

TEST(CallLimit, WarnsOutsideItsLock) { InAChild(CallsFromTheSink); }

}  // namespace
}  // namespace antipode::rabbitmq
