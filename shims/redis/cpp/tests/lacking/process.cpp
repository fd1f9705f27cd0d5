// A process in which the n-th call of a function of the system fails, as nth_failure_test.cpp starts it (BAR-61):
//   PRIMARY-PORT REPLICA-PORT FUNCTION once|burst|on blocking|callback cold|warm N…
// Each round freezes what the replica applies, writes, has a call fail while barriers are asked, and thaws. It prints
// in how many of them a call failed; what may not be is printed, and ends it with 1.
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/antipode.h"
#include "antipode/redis.h"

namespace antipode::redis {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

constexpr auto kOutAfter = 400ms;  // a fault that goes on does so for longer
constexpr auto kWhole = 10s;       // five, and another process may have the machine
constexpr int kInARow = 5;
constexpr auto kTakenInARow = 2s;  // each barrier that wakes nobody would take most of one

const std::string kStore = "posts";

// Nothing here throws: of what a round has to say, memory may be failing.
void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

// Tells the library something; returns how many calls have failed.
long Say(const std::string& words) {
  const int file = open(("/antipode-faults:" + words).c_str(), O_RDONLY);
  char text[80] = {};
  long counted = 0;
  long failed = 0;
  Check(file >= 0 && read(file, text, sizeof text - 1) > 0, "the library is not there");
  close(file);
  Check(std::sscanf(text, "%ld %ld", &counted, &failed) == 2, text);
  return failed;
}

std::string Url(const std::string& port) { return "redis://127.0.0.1:" + port; }

redisContext* Connect(const std::string& port) {
  redisContext* const context = redisConnectWithTimeout("127.0.0.1", std::atoi(port.c_str()), timeval{10, 0});
  Check(context != nullptr && context->err == 0, "no connection to " + port);
  return context;
}

bool HasSignals(const sigset_t& wanted) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  for (int signal = 1; signal < 32; ++signal) {
    if (sigismember(&now, signal) != sigismember(&wanted, signal)) return false;
  }
  return true;
}

class Rounds {
 public:
  Rounds(const std::string& primary, const std::string& replica, bool by_callback, bool is_cold)
      : posts_(Wrapped(primary, replica)), replica_(Connect(replica)), by_callback_(by_callback), is_cold_(is_cold) {
    pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
    Frozen(false);
    if (!is_cold) Check(Judged(Written(), 20s).satisfied(), "a first barrier passes");
  }

  // One round; returns how many calls failed. `counts_ours`: this thread calls the function for Antipode alone.
  long Play(const std::string& words, bool goes_on, bool counts_ours) {
    if (is_cold_) Shutdown();
    const std::string told = counts_ours ? "count" : "spare";
    Frozen(true);
    Say(words);
    Say(told);
    const Lineage lineage = Written();
    Say("spare");
    Check(lineage.OfStore(kStore).size() == 1, "the write is lost");
    Check(!Shows(), "the replica is not frozen");
    const auto over = Time::now() + (goes_on ? kOutAfter * 3 / 2 : 0ms);
    do {
      Say(told);
      const BarrierResult result = Judged(lineage, 150ms);
      Say("spare");
      Check(!result.satisfied(), "A FALSE PASS: " + result.Explain());
    } while (Time::now() < over);
    Check(HasSignals(signals_), "other signals are blocked than before");
    Frozen(false);
    const long failed = Say("disarm");
    Until([&] { return Judged(lineage, 1s).complete(); }, "barriers pass");
    Until([&] { return IsPrompt(); }, "a new barrier wakes the thread");
    return failed;
  }

 private:
  static Connection Wrapped(const std::string& primary, const std::string& replica) {
    SettingWords words;
    words.free_path_ttl = 0ms;
    words.replica_out_after = kOutAfter;
    words.reconnect = 100ms;
    Check(Configure(words).ok(), "the settings");
    auto wrapped = Wrap(Connect(primary), Options(kStore).Replicas({Url(replica)}));
    Check(wrapped.ok(), "the wrap");
    return std::move(wrapped).value();
  }

  static void Until(const std::function<bool()>& condition, const std::string& what) {
    const auto deadline = Time::now() + kWhole;
    while (!condition()) Check(Time::now() < deadline, "in vain: " + what);
  }

  std::string Key() const { return "cpp " + std::to_string(getpid()) + " " + std::to_string(keys_); }

  // By the application's own command.
  Lineage Written() {
    ++keys_;
    Scope scope;
    const Reply reply = posts_.Command("SET %b v", Key().data(), Key().size());
    Check(reply && !reply.IsError(), "the application's command failed");
    return scope->lineage();
  }

  Reply Plainly(const char* command) { return Reply(static_cast<redisReply*>(redisCommand(replica_, command))); }

  void Frozen(bool is_frozen) {
    const Reply reply = Plainly(is_frozen ? "CLIENT PAUSE 600000 WRITE" : "CLIENT UNPAUSE");
    Check(reply && !reply.IsError(), "CLIENT");
  }

  bool Shows() {
    const std::string key = Key();
    const Reply reply(static_cast<redisReply*>(redisCommand(replica_, "GET %b", key.data(), key.size())));
    return reply && reply->type == REDIS_REPLY_STRING;
  }

  bool IsPrompt() {
    const auto began = Time::now();
    for (int count = 0; count < kInARow; ++count) Check(Judged(Written(), 20s).complete(), "a barrier passes");
    return Time::now() - began < kTakenInARow;
  }

  // What a barrier says, by its deadline; a pass is true.
  BarrierResult Judged(const Lineage& lineage, std::chrono::milliseconds timeout) {
    const auto options =
        BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed);
    const auto began = Time::now();
    std::unique_ptr<BarrierResult> result;
    if (by_callback_) {
      std::future<BarrierResult> future = BarrierAsync(lineage, options);
      Check(future.wait_for(timeout + kWhole) == std::future_status::ready, "A HANG: no result");
      result = std::make_unique<BarrierResult>(future.get());
    } else {
      result = std::make_unique<BarrierResult>(Barrier(lineage, options));
    }
    Say("spare");
    Check(Time::now() - began < timeout + kWhole, "past its deadline: " + result->Explain());
    Check(!result->satisfied() || Shows(), "A FALSE PASS: " + result->Explain());
    for (const ServerResult& server : result->stores().at(kStore).servers) {
      Check(!server.left_out, "left out: " + result->Explain());
    }
    return *result;
  }

  Connection posts_;
  redisContext* replica_;
  const bool by_callback_;
  const bool is_cold_;
  sigset_t signals_{};
  int keys_ = 0;
};

int Main(const std::vector<std::string>& words) {
  prctl(PR_SET_NAME, "antipode-main");
  Say("spare");
  const std::string& function = words[2];
  const std::string& kind = words[3];
  Rounds rounds(words[0], words[1], words[4] == "callback", words[5] == "cold");
  const bool counts_ours = function != "poll" && function != "memory";  // which hiredis calls as well
  int failed = 0;
  for (std::size_t at = 6; at < words.size(); ++at) {
    const long calls = rounds.Play("arm " + function + " " + words[at] + " " + kind, kind == "on", counts_ours);
    std::printf("%s: %ld\n", words[at].c_str(), calls);
    std::fflush(stdout);
    failed += calls > 0 ? 1 : 0;
  }
  std::printf("whole %d\n", failed);
  return 0;
}

}  // namespace
}  // namespace antipode::redis

int main(int count, char** words) { return antipode::redis::Main({words + 1, words + count}); }
