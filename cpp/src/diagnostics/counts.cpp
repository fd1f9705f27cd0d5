#include "diagnostics/counts.h"

#include <atomic>
#include <mutex>

#include "base/fork.h"

namespace antipode::counts {
namespace {

constexpr std::size_t kMost = 10000;

std::atomic<std::uint64_t> requests{0};
std::atomic<std::uint64_t> messages{0};
std::atomic<std::uint64_t> enforced{0};

struct KeptCount {
  KeptCount() {
    OnForkInChild([] { Reset(); });  // what was counted is the parent's to tell
  }
  std::mutex mutex;
  Numbers numbers;
};

KeptCount& TheKept() { return ForkSafe<KeptCount, LockOrder::kInner>(); }

}  // namespace

void Add(std::string_view what, const std::string& site, const std::string& store) {
  Counted counted(what, site, store);
  const std::lock_guard<std::mutex> lock(TheKept().mutex);
  Numbers& numbers = TheKept().numbers;
  auto found = numbers.find(counted);
  if (found == numbers.end()) {
    if (numbers.size() >= kMost) std::get<1>(counted).clear();
    found = numbers.emplace(std::move(counted), 0).first;
  }
  ++found->second;
}

void AddRequest() noexcept { requests.fetch_add(1, std::memory_order_relaxed); }

void AddMessage() noexcept { messages.fetch_add(1, std::memory_order_relaxed); }

void AddEnforced() noexcept { enforced.fetch_add(1, std::memory_order_relaxed); }

Numbers Now() {
  Numbers now;
  {
    const std::lock_guard<std::mutex> lock(TheKept().mutex);
    now = TheKept().numbers;
  }
  now[{"requests", "", ""}] = requests.load(std::memory_order_relaxed);
  now[{"messages", "", ""}] = messages.load(std::memory_order_relaxed);
  now[{"enforced_barriers", "", ""}] = enforced.load(std::memory_order_relaxed);
  return now;
}

std::vector<JsonObject> Between(const Numbers& before, const Numbers& now) {
  std::vector<JsonObject> counted;
  for (const auto& [each, count] : now) {
    const auto& [what, site, store] = each;
    const auto found = before.find(each);
    const std::uint64_t grown = count - (found == before.end() ? 0 : found->second);
    if (grown == 0) continue;
    JsonObject one;
    one.Text("what", what);
    if (!site.empty()) one.Text("site", site);
    if (!store.empty()) one.Text("store", store);
    counted.push_back(one.Integer("count", static_cast<std::int64_t>(grown)));
  }
  return counted;
}

void Reset() {
  const std::lock_guard<std::mutex> lock(TheKept().mutex);
  TheKept().numbers.clear();
  requests.store(0, std::memory_order_relaxed);
  messages.store(0, std::memory_order_relaxed);
  enforced.store(0, std::memory_order_relaxed);
}

}  // namespace antipode::counts
