// Where everything that is counted comes together: plain numbers by instrument and attributes, and the sink that
// exports them.
#ifndef ANTIPODE_SRC_MEASURED_H_
#define ANTIPODE_SRC_MEASURED_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/telemetry.h"

namespace antipode::telemetry {

// An attribute's name without `antipode.`, and its value.
using Attribute = std::pair<std::string_view, std::string_view>;

// A counter of the table grows.
void Add(std::string_view instrument, std::initializer_list<Attribute> attributes, std::uint64_t number = 1);

// A histogram of the table gets a value.
void Record(std::string_view instrument, std::initializer_list<Attribute> attributes, double value);

// The sink in force, or null.
std::shared_ptr<TelemetrySink> Sink();

// What is observed when somebody reads: adds its values.
using Observe = void (*)(std::vector<Measured>& measured);
void AddObserved(Observe observe);

}  // namespace antipode::telemetry

#endif  // ANTIPODE_SRC_MEASURED_H_
