// Where everything that is counted comes together: plain numbers by instrument and attributes, by the names of the
// specification (spec OBS), and the sink that exports them.
#ifndef ANTIPODE_SRC_DIAGNOSTICS_MEASURED_H_
#define ANTIPODE_SRC_DIAGNOSTICS_MEASURED_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/export.h"
#include "antipode/telemetry.h"

namespace antipode ANTIPODE_EXPORT {
namespace telemetry {

// An attribute's name without `antipode.`, and its value.
using Attribute = std::pair<std::string_view, std::string_view>;

// A counter of the table grows.
void Add(std::string_view instrument, std::initializer_list<Attribute> attributes, std::uint64_t number = 1);

// A histogram of the table gets a value.
void Record(std::string_view instrument, std::initializer_list<Attribute> attributes, double value);

// The sink in force, or null.
std::shared_ptr<TelemetrySink> Sink();

// Keeps why this process may not mark a store's epochs; empty: it may (EPOCH-26).
void NoteMarks(std::string_view store, std::string_view missing);

// What was counted since the start or `Reset`: `antipode.write.lost{antipode.reason=orphan,…}` to a number.
std::map<std::string, std::uint64_t> Counts();

// A call site as an attribute: past 1,000 different ones, `other` (OBS-6).
std::string Bounded(std::string_view site);

// Forgets counts and sites (tests).
void Reset();

}  // namespace telemetry
}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_MEASURED_H_
