#include "marks.h"

#include <atomic>
#include <charconv>

namespace antipode::redis {
namespace {

std::atomic<std::int64_t> period_ms{1000};

}  // namespace

std::chrono::milliseconds MarkPeriod() { return std::chrono::milliseconds(period_ms.load()); }

void SetMarkPeriod(std::chrono::milliseconds period) { period_ms = period.count(); }

std::optional<std::uint64_t> PositionOfMark(std::string_view value) {
  std::uint64_t position = 0;
  const char* const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, position);
  if (error != std::errc() || end == last || *end != ' ') return std::nullopt;
  if (value.find(' ', static_cast<std::size_t>(end - value.data()) + 1) != std::string_view::npos) return std::nullopt;
  return position;
}

}  // namespace antipode::redis
