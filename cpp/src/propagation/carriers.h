// Where a lineage stands in headers: read from raw lines, taken out, put in (spec PROP). No trust here.
#ifndef ANTIPODE_SRC_PROPAGATION_CARRIERS_H_
#define ANTIPODE_SRC_PROPAGATION_CARRIERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/carrier.h"
#include "antipode/propagation.h"

namespace antipode {

inline constexpr std::size_t kMaxBaggageBytes = 8192;
inline constexpr std::size_t kMaxBaggageMembers = 64;

// A baggage line without the lineage; the application's members stay as they are spelled (PROP-10).
std::string WithoutMember(std::string_view baggage);

// A baggage line with the lineage as its last member; nothing where that passes a limit (PROP-8, PROP-9).
std::optional<std::string> WithMember(std::string_view baggage, std::string_view text);

// Makes headers carry this lineage text and no older one. With no text the lineage is only taken out.
void Rewrite(Carrier& headers, const std::optional<std::string>& text, Formats formats);

// The values of the lines of this name, in order.
std::vector<std::string> ValuesOf(const Carrier& headers, std::string_view name);

// In which formats the application was said to propagate.
Formats DeclaredFormats();

}  // namespace antipode

#endif  // ANTIPODE_SRC_PROPAGATION_CARRIERS_H_
