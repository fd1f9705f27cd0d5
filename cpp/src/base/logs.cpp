#include "antipode/logs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fork.h"

namespace antipode {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPeriod = std::chrono::minutes(1);
constexpr std::size_t kMostKinds = 1000;  // kinds may name call sites

struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;
  struct Kind {
    Clock::time_point last;
    long held = 0;
  };
  std::unordered_map<std::string, Kind> kinds;
};

Log& TheLog() { return ForkSafe<Log, LockOrder::kInner>(); }

// How many lines of this kind were held back since the last one; nothing where this one is held too.
std::optional<long> Admit(const std::string& kind) {
  Log& log = TheLog();
  const auto now = Clock::now();
  const std::lock_guard<std::mutex> lock(log.mutex);
  const auto found = log.kinds.find(kind);
  if (found != log.kinds.end() && now - found->second.last < kPeriod) {
    ++found->second.held;
    return std::nullopt;
  }
  if (found == log.kinds.end() && log.kinds.size() >= kMostKinds) {  // the one that was said longest ago goes
    log.kinds.erase(std::min_element(log.kinds.begin(), log.kinds.end(), [](const auto& a, const auto& b) {
      return a.second.last < b.second.last;
    }));
  }
  Log::Kind& admitted = log.kinds[kind];
  admitted.last = now;
  return std::exchange(admitted.held, 0);
}

void SayNow(LogLevel level, std::string_view line) {
  std::shared_ptr<const LogSink> sink;
  {
    Log& log = TheLog();
    const std::lock_guard<std::mutex> lock(log.mutex);
    sink = log.sink;
  }
  if (sink != nullptr) {
    (*sink)(level, line);
  } else if (level != LogLevel::kInfo) {
    const std::string_view word = ToString(level);
    std::fprintf(stderr, "%.*s antipode: %.*s\n", static_cast<int>(word.size()), word.data(),
                 static_cast<int>(line.size()), line.data());
  }
}

void SayOnceAMinute(LogLevel level, MessageCode code, const std::string& kind, std::string_view words,
                    std::string_view count_as) {
  const std::optional<long> held = Admit(kind);
  if (!held) return;
  std::string line = WithCode(words, code);
  if (!count_as.empty()) {
    line.append(" ").append(count_as).append("=").append(std::to_string(*held + 1));
  } else if (*held > 0) {
    line += " (and " + std::to_string(*held) + " more like it)";
  }
  SayNow(level, line);
}

// A line that this process has no memory for is not said: that is no fault of who says it (BAR-61).
template <class What>
void Quietly(const What& what) noexcept {
  try {
    what();
  } catch (...) {
    return;
  }
}

}  // namespace

std::string_view ToString(LogLevel level) {
  return level == LogLevel::kInfo ? "INFO" : level == LogLevel::kWarning ? "WARNING" : "ERROR";
}

void SetLogSink(LogSink sink) {
  Log& log = TheLog();
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard<std::mutex> lock(log.mutex);
  log.sink = std::move(next);
}

namespace logs {

void Say(MessageCode code, LogLevel level, std::string_view line, std::string_view why) noexcept {
  Quietly([&] {
    std::string said(line);
    if (!why.empty()) said.append(": ").append(why);
    SayNow(level, WithCode(said, code));
  });
}

void Warn(MessageCode code, const std::string& kind, std::string_view words, std::string_view count_as) noexcept {
  Quietly([&] { SayOnceAMinute(LogLevel::kWarning, code, kind, words, count_as); });
}

void Info(MessageCode code, const std::string& kind, std::string_view words, std::string_view count_as) noexcept {
  Quietly([&] { SayOnceAMinute(LogLevel::kInfo, code, kind, words, count_as); });
}

void Reset() {
  Log& log = TheLog();
  const std::lock_guard<std::mutex> lock(log.mutex);
  log.kinds.clear();
}

}  // namespace logs
}  // namespace antipode
