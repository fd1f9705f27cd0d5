#include "memory/monkey.h"

#include <map>
#include <memory>

namespace antipode::memory {

StaleChoice Seeded(std::uint64_t seed, const std::vector<std::string>& regions) {
  SplitMix64 root(seed);
  const auto generators = std::make_shared<std::map<std::string, SplitMix64>>();
  for (const std::string& region : regions) generators->emplace(region, SplitMix64(root.Next()));
  return [generators](const StaleRead& read) {
    return static_cast<std::size_t>(generators->at(read.region).Next() % (read.most + 1));
  };
}

}  // namespace antipode::memory
