// The strict reader: validates a lineage text in one pass and splits it into closed sections (spec WIRE).
#ifndef ANTIPODE_SRC_MODEL_PARSE_H_
#define ANTIPODE_SRC_MODEL_PARSE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/result.h"
#include "model/section_places.h"

namespace antipode {

// A text split at `~`. Views are into the text that was read.
struct ParsedText {
  SectionPlaces sections;                    // in the order of their heads
  std::vector<std::string_view> incomplete;  // spelled stores, sorted, each once; one empty name means anywhere
  std::vector<std::string_view> extensions;  // unknown ones, sorted, each once
  bool plain = false;                        // whether the text is nothing but these sections, in canonical order
};

// How a section begins: its store and the dot. No two sections of a lineage begin alike, so these decide their order.
inline std::string_view SectionHead(std::string_view section) { return section.substr(0, section.find('.') + 1); }

// The number of entries of a section that has been validated.
std::size_t CountEntries(std::string_view section);

// Validates and splits; kMalformedLineage where the grammar or a bound is broken, or a store stands twice.
Result<ParsedText> Parse(std::string_view text);

// The value of decimal digits that have been validated.
std::uint64_t CounterOf(std::string_view digits);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_PARSE_H_
