// What a service does with a lineage: read it, append one write, write it; beside a list of writes in JSON, each write
// once more. After 20 writes to so many stores with positions, or of 20 objects. The target is 1 µs a hop with 1 to 5
// stores.
#include <antipode/antipode.h>
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using antipode::Lineage;
using antipode::WriteId;

constexpr std::uint64_t kWrites = 20;

WriteId PositionAt(std::uint64_t store, std::uint64_t counter) {
  return *WriteId::Position("blog-posts-" + std::to_string(store), "8371ab90c2d4e6f1", 10000 + counter);
}

std::vector<WriteId> WritesTo(std::uint64_t stores) {
  std::vector<WriteId> writes;
  for (std::uint64_t i = 0; i < kWrites; ++i) writes.push_back(PositionAt(i % stores, i));
  return writes;
}

std::vector<WriteId> Objects() {
  std::vector<WriteId> writes;
  for (std::uint64_t i = 0; i < kWrites; ++i) {
    writes.push_back(*WriteId::Make("images", "cat-" + std::to_string(i), antipode::Opaque{"3sL4kqtJlcpXroDT"}));
  }
  return writes;
}

nlohmann::json Listed(const WriteId& id) {
  return nlohmann::json::array({id.store(), id.key(), antipode::ToString(id.version())});
}

void Hop(benchmark::State& state, const std::string& text, const WriteId& next) {
  for (auto _ : state) {
    const std::string written = Lineage::Deserialize(text)->Including(next).Serialize();
    benchmark::DoNotOptimize(written.data());
  }
  state.counters["bytes"] = static_cast<double>(text.size());
}

void HopOverPositions(benchmark::State& state) {
  const auto stores = static_cast<std::uint64_t>(state.range(0));
  Hop(state, Lineage(WritesTo(stores)).Serialize(), PositionAt(kWrites % stores, kWrites));
}

void HopOverObjects(benchmark::State& state) {
  Hop(state, Lineage(Objects()).Serialize(), *WriteId::Make("images", "dog", antipode::Opaque{"9sL4kqtJlcpXroDT"}));
}

void HopOverJson(benchmark::State& state) {
  const auto stores = static_cast<std::uint64_t>(state.range(0));
  nlohmann::json list = nlohmann::json::array();
  for (const WriteId& id : WritesTo(stores)) list.push_back(Listed(id));
  const std::string text = list.dump();
  const WriteId next = PositionAt(kWrites % stores, kWrites);
  for (auto _ : state) {
    nlohmann::json read = nlohmann::json::parse(text);
    read.push_back(Listed(next));
    const std::string written = read.dump();
    benchmark::DoNotOptimize(written.data());
  }
  state.counters["bytes"] = static_cast<double>(text.size());
}

void JoinOfAResponse(benchmark::State& state) {
  const Lineage lineage(WritesTo(static_cast<std::uint64_t>(state.range(0))));
  const std::string answer = Lineage(PositionAt(0, kWrites)).Serialize();
  for (auto _ : state) {
    const Lineage joined = lineage | *Lineage::Deserialize(answer);
    benchmark::DoNotOptimize(joined.empty());
  }
}

void AppendInAScope(benchmark::State& state) {
  const antipode::Scope scope;
  std::uint64_t counter = 0;
  for (auto _ : state) antipode::Append(*WriteId::Position("posts", "8371ab90c2d4e6f1", ++counter));
}

BENCHMARK(HopOverPositions)->DenseRange(1, 5)->Arg(20);
BENCHMARK(HopOverObjects);
BENCHMARK(HopOverJson)->Arg(1)->Arg(3)->Arg(5);
BENCHMARK(JoinOfAResponse)->Arg(1)->Arg(5);
BENCHMARK(AppendInAScope);

}  // namespace

BENCHMARK_MAIN();
