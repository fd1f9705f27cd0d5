// What a barrier costs: one that repeats what was just proved (the free path), the same from many threads, one of a new
// scope that the watermarks cover, an empty one, and ten thousand that wait and are released together. The targets: 0.2
// µs for a satisfied barrier on one store, 100 ms for ten thousand callbacks.
#include <antipode/antipode.h>
#include <antipode/memory.h>
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using namespace std::chrono_literals;  // NOLINT: durations of a benchmark

void Need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "barrier benchmark: %s\n", what);
  std::abort();
}

// One store with a primary and a replica, and a lineage of one write to it.
struct OneStore {
  OneStore() {
    antipode::SettingWords words;
    words.free_path_ttl = 3600s;
    words.max_tasks = 100000;
    Need(antipode::Configure(words).ok(), "configure");
    const antipode::Scope scope;
    Need(writer.Set("post:42", "hi").ok(), "write");
    lineage = scope.lineage();
    Need(antipode::Barrier(antipode::BarrierOptions().Timeout(10s)).satisfied(), "first barrier");
  }

  antipode::MemoryStore store{"blog-posts", {"a", "b"}};
  antipode::MemoryClient writer = store.Client("a");
  antipode::MemoryClient reader = store.Client("b");
  antipode::Lineage lineage;
};

OneStore& Store() {
  static auto* const store = new OneStore();
  return *store;
}

void RepeatedBarrier(benchmark::State& state) {
  const antipode::Scope scope(Store().lineage);
  Need(antipode::Barrier().satisfied(), "barrier");
  for (auto _ : state) {
    const antipode::BarrierResult result = antipode::Barrier();
    if (!result.satisfied()) state.SkipWithError("not satisfied");
  }
}

void EmptyBarrier(benchmark::State& state) {
  Store();
  const antipode::Scope scope;
  for (auto _ : state) {
    const antipode::BarrierResult result = antipode::Barrier();
    if (!result.satisfied()) state.SkipWithError("not satisfied");
  }
}

void BarrierOfANewScope(benchmark::State& state) {
  const antipode::Lineage lineage = Store().lineage;
  for (auto _ : state) {
    const antipode::Scope scope(lineage);
    const antipode::BarrierResult result = antipode::Barrier();
    if (!result.satisfied()) state.SkipWithError("not satisfied");
  }
}

void ReleaseOfTenThousand(benchmark::State& state) {
  constexpr int kMany = 10000;
  OneStore& one = Store();
  for (auto _ : state) {
    one.store.Freeze("b");
    antipode::Lineage lineage;
    {
      const antipode::Scope scope;
      Need(one.writer.Set("k", "v").ok(), "write");
      lineage = scope.lineage();
    }
    std::atomic<int> called{0};
    for (int number = 0; number < kMany; ++number) {
      antipode::BarrierAsync(
          lineage, antipode::BarrierOptions().Timeout(60s),
          [&called](const antipode::BarrierResult& result) { called += result.satisfied() ? 1 : 0; });
    }
    const auto began = std::chrono::steady_clock::now();
    one.store.Heal("b");
    while (called < kMany) std::this_thread::yield();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
}

BENCHMARK(RepeatedBarrier);
BENCHMARK(RepeatedBarrier)->Threads(16)->Name("RepeatedBarrierFrom16Threads");
BENCHMARK(EmptyBarrier);
BENCHMARK(BarrierOfANewScope);
BENCHMARK(ReleaseOfTenThousand)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);

}  // namespace
