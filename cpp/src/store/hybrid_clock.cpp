#include "antipode/shim/hybrid_clock.h"

#include <openssl/rand.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "antipode/logs.h"
#include "base/fork.h"
#include "base/observers.h"
#include "model/digest.h"

namespace antipode {
namespace {

constexpr unsigned kNodeBits = 14;
constexpr unsigned kPlaceBits = 8;   // the upper bits of a node; below them are bits that tell its processes apart
constexpr std::int64_t kTicksPerMs = 256;
constexpr std::int64_t kNanosecondsPerMs = 1'000'000;
constexpr std::uint64_t kMostTick = std::numeric_limits<std::uint64_t>::max() >> kNodeBits;

std::int64_t TickOf(std::int64_t nanoseconds) {
  // In two steps, because the product of the whole would not fit.
  const std::int64_t ms = nanoseconds / kNanosecondsPerMs;
  return ms * kTicksPerMs + nanoseconds % kNanosecondsPerMs * kTicksPerMs / kNanosecondsPerMs;
}

std::int64_t MachineTime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::uint16_t RandomBits(unsigned bits) {
  unsigned char octets[2] = {0, 0};
  RAND_bytes(octets, sizeof octets);
  return static_cast<std::uint16_t>((octets[0] << 8 | octets[1]) & ((1 << bits) - 1));
}

std::atomic<std::uint64_t> forks{0};

void CountForks() {
  static const bool once = [] {
    OnForkInChild([] { ++forks; });
    return true;
  }();
  static_cast<void>(once);
}

HybridClock::Options WithTime(HybridClock::Options options) {
  if (!options.time) options.time = MachineTime;
  return options;
}

}  // namespace

std::uint8_t PlaceNumber(std::string_view region) { return Sha256(region)[0]; }

HybridClock::HybridClock(Options options) : options_(WithTime(std::move(options))), forks_(0), node_(Draw()) {
  CountForks();
  forks_ = forks.load();
}

std::uint16_t HybridClock::node() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return NodeOfThisProcess();
}

std::uint64_t HybridClock::Next() {
  const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(TickOf(options_.time()), 0));
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = std::max(now, last_ + 1);
  return last_ << kNodeBits | NodeOfThisProcess();
}

bool HybridClock::Observe(std::uint64_t counter) {
  const std::uint64_t tick = counter >> kNodeBits;
  const std::int64_t now = TickOf(options_.time());
  const std::int64_t most = TickOf(options_.max_ahead.count());
  const std::int64_t ahead = static_cast<std::int64_t>(tick) - now;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tick <= last_) return true;
    if (ahead <= most) {
      last_ = tick;
      return true;
    }
  }
  ++refused_;
  Events().LineageDropped("implausible", "write");
  logs::Warn("AP413", "clock",
             "refused a version " + std::to_string(ahead / (kTicksPerMs * 1000)) +
                 " s ahead of this machine's time: it is forged, or the clock of this machine or of the writer's is "
                 "wrong.");
  return false;
}

std::optional<std::uint64_t> HybridClock::Above(std::uint64_t counter) const {
  const std::uint64_t tick = (counter >> kNodeBits) + 1;
  if (tick > kMostTick) return std::nullopt;
  return tick << kNodeBits | node();
}

// The child of a fork is another writer: it has a node of its own.
std::uint16_t HybridClock::NodeOfThisProcess() const {
  const std::uint64_t now = forks.load();
  if (forks_ != now) {
    forks_ = now;
    node_ = Draw();
  }
  return node_;
}

std::uint16_t HybridClock::Draw() const {
  if (options_.node) return static_cast<std::uint16_t>(*options_.node & ((1U << kNodeBits) - 1));
  if (!options_.place) return RandomBits(kNodeBits);
  constexpr unsigned kProcessBits = kNodeBits - kPlaceBits;
  return static_cast<std::uint16_t>(*options_.place << kProcessBits | RandomBits(kProcessBits));
}

}  // namespace antipode
