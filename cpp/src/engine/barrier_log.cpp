#include "engine/barrier_log.h"

#include <atomic>
#include <map>
#include <mutex>

namespace antipode {
namespace {

struct Log {
  std::atomic<int> asked{0};
  std::mutex mutex;
  std::map<std::string, int> counts;
};

Log& TheLog() {
  static auto* const log = new Log();
  return *log;
}

}  // namespace

bool BarrierLog::Active() noexcept { return TheLog().asked.load(std::memory_order_relaxed) > 0; }

void BarrierLog::Note(const std::string& store) {
  if (!Active()) return;
  const std::lock_guard<std::mutex> lock(TheLog().mutex);
  ++TheLog().counts[store];
}

int BarrierLog::Count(const std::string& store) {
  const std::lock_guard<std::mutex> lock(TheLog().mutex);
  const auto found = TheLog().counts.find(store);
  return found == TheLog().counts.end() ? 0 : found->second;
}

void BarrierLog::Begin() {
  const std::lock_guard<std::mutex> lock(TheLog().mutex);
  TheLog().counts.clear();
  ++TheLog().asked;
}

void BarrierLog::End() { --TheLog().asked; }

}  // namespace antipode
