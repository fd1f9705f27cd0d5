// How a lineage is held: its canonical text, and where in it each closed section stands.
#ifndef ANTIPODE_SRC_MODEL_LINEAGE_REP_H_
#define ANTIPODE_SRC_MODEL_LINEAGE_REP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"
#include "model/parse.h"
#include "model/short_text.h"

namespace antipode {

// Never empty and complete: that lineage has no representation at all.
struct Lineage::Rep {
  using Part = SectionPlace;

  ShortText text;
  SectionPlaces parts;                  // in canonical order, which is that of the heads
  std::vector<std::string> incomplete;  // spelled, sorted; one empty name means anywhere
  std::vector<std::string> extensions;  // unknown ones, as spelled, sorted

  std::string_view Section(std::size_t i) const { return text.view().substr(parts[i].begin, parts[i].size); }
  std::string_view Head(std::size_t i) const { return text.view().substr(parts[i].begin, parts[i].head); }
};

// The ways in which the parts of this library make lineages and look into them.
struct LineageAccess {
  using Rep = Lineage::Rep;
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  // Of a text that has been read; `text` is what `parsed` has its views into.
  static Lineage Of(ParsedText&& parsed, std::string_view text);

  // Of sections in canonical order, spelled names and extensions, both sorted.
  static Lineage Make(const std::vector<std::string_view>& sections, std::vector<std::string> incomplete,
                      std::vector<std::string> extensions);

  // The same flag and extensions with other sections.
  static Lineage With(const Lineage& base, const std::vector<std::string_view>& sections);

  // The same with other extensions, which are sorted.
  static Lineage WithExtensions(const Lineage& base, std::vector<std::string> extensions);

  // The same but for one section, which from `offset` on ends with `tail`.
  static Lineage Replaced(const Lineage& base, std::size_t place, std::size_t offset, std::string_view tail);

  // The sections of `a` less what `b` covers, with this flag and these extensions.
  static Lineage Subtract(const Lineage& a, const Lineage& b, std::vector<std::string> incomplete,
                          std::vector<std::string> extensions);

  // Leaves sections out until the text fits (WIRE-33 to WIRE-35).
  static Lineage Fitted(const Lineage& lineage, std::size_t budget, const std::vector<std::string>& changed);

  static std::vector<std::string_view> Sections(const Lineage& lineage);
  static std::size_t EntryCount(const Lineage& lineage);

  // The place of the section that begins so; kAbsent where there is none.
  static std::size_t Find(const Lineage& lineage, std::string_view head);
  // The same by the spelled store, without its dot.
  static std::size_t FindStore(const Lineage& lineage, std::string_view store);
};

// Whether a flag of spelled names means anywhere.
inline bool IsAnywhere(const std::vector<std::string>& incomplete) {
  return !incomplete.empty() && incomplete.front().empty();
}

// Union of two flags; anywhere absorbs the named stores.
std::vector<std::string> JoinIncomplete(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_LINEAGE_REP_H_
