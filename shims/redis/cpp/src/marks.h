// In-band marks: one hash in the store itself, `epoch -> greatest position that lies before this record` (spec EPOCH).
//
// A field is an epoch (16 hex digits), its value `<position> <running number>`; the field `clock` holds `<last number>
// <milliseconds of the last mark> <epoch of it>`.
#ifndef ANTIPODE_REDIS_MARKS_H_
#define ANTIPODE_REDIS_MARKS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace antipode::redis {

inline constexpr std::string_view kDefaultMarksKey = "antipode:epochs";
// So many epochs are kept; beyond, those with the smallest running numbers go.
inline constexpr int kMostMarks = 1000;

// At most one mark a store in so long a time, whoever writes it.
std::chrono::milliseconds MarkPeriod();
// Another period, for tests.
void SetMarkPeriod(std::chrono::milliseconds period);

// The position in a field's value; nothing where it is no mark.
std::optional<std::uint64_t> PositionOfMark(std::string_view value);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_MARKS_H_
