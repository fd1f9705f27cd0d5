// One store's section of a lineage, opened: its entries, kept minimal (spec LIN, WIRE).
#ifndef ANTIPODE_SRC_MODEL_SECTION_H_
#define ANTIPODE_SRC_MODEL_SECTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antipode {

// One spelled entry. Views are into the text of the section that it was opened from.
struct Entry {
  std::string_view text;   // `key.epoch.counter` or `key._.mark`
  std::string_view key;    // empty: a position
  std::string_view epoch;  // `_`: an opaque version
  std::string_view last;   // the counter's digits, or the mark
  std::uint64_t counter = 0;

  bool is_opaque() const { return epoch == "_"; }
  bool is_position() const { return key.empty(); }
};

// The entries of one store in the normal form of the algebra, in canonical order.
class Section {
 public:
  // Opens and normalises section texts of one store that have been validated, and joins them.
  static Section Open(std::string_view text) { return Open(text, {}); }
  static Section Open(std::string_view text, std::string_view other);

  // The entries of this section that the other does not cover.
  Section Minus(const Section& other) const;

  bool empty() const { return entries_.empty(); }
  std::string_view store() const { return store_; }
  const std::vector<Entry>& entries() const { return entries_; }

  // The section in canonical spelling.
  std::string Text() const;

 private:
  std::string_view store_;
  std::vector<Entry> entries_;
};

// The join of two section texts of one store, opened only where it must be.
std::string JoinSections(std::string_view a, std::string_view b);

// What of section a section b does not cover, as canonical text; empty where nothing is left.
std::string SubtractSections(std::string_view a, std::string_view b);

// Where a section is one position and nothing else: how it stands before the counter, with the last dot. Else empty.
std::string_view OnlyPositionHead(std::string_view section);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_SECTION_H_
