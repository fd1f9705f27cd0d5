#include "engine/branches.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace antipode {
namespace {

constexpr std::chrono::hours kRowLife{24};

bool IsExpired(const WriteId& entry, std::uint64_t oldest) {
  const Ordered* version = entry.ordered();
  return version != nullptr && !entry.is_position() && version->epoch.empty() && version->counter < oldest;
}

}  // namespace

bool HasOpenBranches(const Lineage& lineage) {
  const auto kept_since = std::chrono::system_clock::now() - kRowLife;
  const auto oldest = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kept_since.time_since_epoch()).count());
  const std::vector<WriteId> entries = lineage.OfStore(kBranches);
  return std::any_of(entries.begin(), entries.end(), [&](const WriteId& entry) { return !IsExpired(entry, oldest); });
}

}  // namespace antipode
