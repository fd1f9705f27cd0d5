#include "diagnostics/sampling.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>

#include "base/in_force.h"

namespace antipode {
namespace {

// W3C's trace context has these digits, the last ones of a trace id, random.
constexpr std::size_t kRandomDigits = 14;

}  // namespace

bool IsSampled(const std::optional<SpanName>& span) {
  const double share = InForce()->sample;
  if (span && span->trace_id.size() >= kRandomDigits) {
    const char* const end = span->trace_id.data() + span->trace_id.size();
    std::uint64_t number = 0;
    const auto read = std::from_chars(end - kRandomDigits, end, number, 16);
    // Exactly, as a number of 56 bits and not as the double that it would be rounded to.
    if (read.ec == std::errc() && read.ptr == end) {
      return number < static_cast<std::uint64_t>(std::ceil(std::ldexp(share, 56)));
    }
  }
  thread_local std::minstd_rand chance{std::random_device{}()};
  return std::uniform_real_distribution<double>()(chance) < share;
}

}  // namespace antipode
