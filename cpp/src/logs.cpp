#include "antipode/logs.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "fork.h"

namespace antipode {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPeriod = std::chrono::minutes(1);
constexpr std::size_t kMostKinds = 1000;  // kinds may name call sites

struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;
  std::unordered_map<std::string, Clock::time_point> last;
  std::unordered_map<std::string, long> held;
};

Log& TheLog() { return ForkSafe<Log, LockOrder::kInner>(); }

// How many lines of this kind were held back since the last one; nothing where this one is held too.
std::optional<long> Admit(const std::string& kind) {
  Log& log = TheLog();
  const auto now = Clock::now();
  const std::lock_guard<std::mutex> lock(log.mutex);
  const auto last = log.last.find(kind);
  if (last != log.last.end() && now - last->second < kPeriod) {
    ++log.held[kind];
    return std::nullopt;
  }
  if (log.last.size() > kMostKinds) log.last.clear();
  log.last[kind] = now;
  const auto held = log.held.find(kind);
  if (held == log.held.end()) return 0;
  const long count = held->second;
  log.held.erase(held);
  return count;
}

void SayOnceAMinute(LogLevel level, const std::string& kind, const std::string& message, std::string_view count_as) {
  const std::optional<long> held = Admit(kind);
  if (!held) return;
  std::string line = message;
  if (!count_as.empty()) {
    line.append(" ").append(count_as).append("=").append(std::to_string(*held + 1));
  } else if (*held > 0) {
    line += " (and " + std::to_string(*held) + " more like it)";
  }
  logs::Say(level, line);
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

void Say(LogLevel level, std::string_view line) {
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

void Warn(const std::string& kind, const std::string& message, std::string_view count_as) {
  SayOnceAMinute(LogLevel::kWarning, kind, message, count_as);
}

void Info(const std::string& kind, const std::string& message, std::string_view count_as) {
  SayOnceAMinute(LogLevel::kInfo, kind, message, count_as);
}

void Reset() {
  Log& log = TheLog();
  const std::lock_guard<std::mutex> lock(log.mutex);
  log.last.clear();
  log.held.clear();
}

}  // namespace logs
}  // namespace antipode
