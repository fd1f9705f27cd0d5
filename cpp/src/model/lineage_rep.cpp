#include "model/lineage_rep.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "antipode/wire.h"
#include "model/section.h"

namespace antipode {
namespace {

using Rep = LineageAccess::Rep;

// What an anonymous flag adds to a text: `~_.i`.
constexpr std::size_t kAnywhereLength = 4;
// Names in the flag may take this part of the budget.
constexpr std::size_t kShareOfFlag = 8;

// The flag as an extension.
std::string FlagText(const std::vector<std::string>& incomplete) {
  std::string text = "_.i";
  if (IsAnywhere(incomplete)) return text;
  for (const std::string& store : incomplete) {
    text += '.';
    text += store;
  }
  return text;
}

void AddSection(std::string& text, SectionPlaces& parts, std::string_view section) {
  text += '~';
  parts.push_back({static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(section.size()),
                   static_cast<std::uint32_t>(SectionHead(section).size())});
  text += section;
}

// Writes the flag and the unknown extensions behind the sections, in byte order.
void AddExtensions(std::string& text, const Rep& rep) {
  if (rep.incomplete.empty() && rep.extensions.empty()) return;
  std::vector<std::string> all = rep.extensions;
  if (!rep.incomplete.empty()) {
    std::string flag = FlagText(rep.incomplete);
    all.insert(std::lower_bound(all.begin(), all.end(), flag), flag);
  }
  for (const std::string& extension : all) {
    text += '~';
    text += extension;
  }
}

std::vector<std::string> Owned(const std::vector<std::string_view>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

std::vector<std::string> JoinIncomplete(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> joined;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined));
  if (IsAnywhere(joined)) joined.resize(1);
  return joined;
}

Lineage LineageAccess::Of(ParsedText&& parsed, std::string_view text) {
  if (!parsed.plain) {
    std::vector<std::string_view> sections;
    sections.reserve(parsed.sections.size());
    for (const SectionPlace& place : parsed.sections) sections.push_back(text.substr(place.begin, place.size));
    return Make(sections, Owned(parsed.incomplete), Owned(parsed.extensions));
  }
  if (parsed.sections.empty()) return Lineage();
  // Nothing but sections in order: the text is taken as it is.
  auto rep = std::make_shared<Rep>();
  rep->text.Assign(text);
  rep->parts = std::move(parsed.sections);
  return Lineage(std::move(rep));
}

Lineage LineageAccess::Make(const std::vector<std::string_view>& sections, std::vector<std::string> incomplete,
                            std::vector<std::string> extensions) {
  if (sections.empty() && incomplete.empty() && extensions.empty()) return Lineage();
  auto rep = std::make_shared<Rep>();
  std::size_t size = wire::kEmptyText.size();
  for (const std::string_view section : sections) size += section.size() + 1;
  std::string text;
  text.reserve(size);
  text = wire::kEmptyText;
  for (const std::string_view section : sections) AddSection(text, rep->parts, section);
  rep->incomplete = std::move(incomplete);
  rep->extensions = std::move(extensions);
  AddExtensions(text, *rep);
  rep->text.Assign(text);
  return Lineage(std::move(rep));
}

Lineage LineageAccess::With(const Lineage& base, const std::vector<std::string_view>& sections) {
  if (base.rep_ == nullptr) return Make(sections, {}, {});
  return Make(sections, base.rep_->incomplete, base.rep_->extensions);
}

Lineage LineageAccess::WithExtensions(const Lineage& base, std::vector<std::string> extensions) {
  if (base.rep_ == nullptr) return Make({}, {}, std::move(extensions));
  return Make(Sections(base), base.rep_->incomplete, std::move(extensions));
}

Lineage LineageAccess::Replaced(const Lineage& base, std::size_t place, std::size_t offset, std::string_view tail) {
  auto rep = std::make_shared<Rep>(*base.rep_);
  Rep::Part& part = rep->parts[place];
  rep->text.Replace(part.begin + offset, part.size - offset, tail);
  const auto size = static_cast<std::uint32_t>(offset + tail.size());
  const std::uint32_t shift = size - part.size;  // unsigned, and so also where it is shorter
  part.size = size;
  for (std::size_t i = place + 1; i < rep->parts.size(); ++i) rep->parts[i].begin += shift;
  return Lineage(std::move(rep));
}

Lineage LineageAccess::Subtract(const Lineage& a, const Lineage& b, std::vector<std::string> incomplete,
                                std::vector<std::string> extensions) {
  std::vector<std::string> made;
  made.reserve(a.rep_ == nullptr ? 0 : a.rep_->parts.size());
  std::vector<std::string_view> sections;
  for (const std::string_view section : Sections(a)) {
    const std::size_t place = Find(b, SectionHead(section));
    if (place == kAbsent) {
      sections.push_back(section);
      continue;
    }
    made.push_back(SubtractSections(section, b.rep_->Section(place)));
    if (!made.back().empty()) sections.push_back(made.back());
  }
  return Make(sections, std::move(incomplete), std::move(extensions));
}

namespace {

// The sections in the order in which they are left out, the last one first (WIRE-33). `alone`: the room that one would
// have without the others; what does not fit into it goes first, however new it is.
std::vector<std::string_view> ByWorth(std::vector<std::string_view> sections, const std::vector<std::string>& changed,
                                      std::size_t alone) {
  std::unordered_map<std::string, std::size_t> age;  // of spelled stores: the greater, the newer
  for (const std::string& store : changed) age[wire::Spell(store)] = age.size() + 1;
  std::vector<std::pair<std::size_t, std::string_view>> aged;
  aged.reserve(sections.size());
  for (const std::string_view section : sections) {
    const auto found = age.find(std::string(section.substr(0, section.find('.'))));
    const bool counts = found != age.end() && section.size() < alone && CountEntries(section) <= wire::kMaxEntries;
    aged.emplace_back(counts ? found->second : 0, section);
  }
  std::sort(aged.begin(), aged.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second < b.second;
  });
  for (std::size_t i = 0; i < aged.size(); ++i) sections[i] = aged[i].second;
  return sections;
}

// What the flag takes in the text, `~` included.
std::size_t FlagSize(const std::vector<std::string>& incomplete) {
  return incomplete.empty() ? 0 : FlagText(incomplete).size() + 1;
}

}  // namespace

Lineage LineageAccess::Fitted(const Lineage& lineage, std::size_t budget, const std::vector<std::string>& changed) {
  const Rep& rep = *lineage.rep_;
  std::vector<std::string> incomplete = rep.incomplete;
  std::size_t rest = wire::kEmptyText.size();
  for (const std::string& extension : rep.extensions) rest += extension.size() + 1;
  const std::size_t least = std::min(rest + kAnywhereLength, budget);
  std::vector<std::string_view> kept = ByWorth(Sections(lineage), changed, budget - least);
  std::size_t flag = FlagSize(incomplete);
  std::size_t size = 0;
  for (const std::string_view section : kept) size += section.size() + 1;
  std::size_t entries = EntryCount(lineage);
  while (!kept.empty() && (rest + size + flag > budget || entries > wire::kMaxEntries)) {
    const std::string_view section = kept.back();
    kept.pop_back();
    size -= section.size() + 1;
    entries -= CountEntries(section);
    incomplete = JoinIncomplete(incomplete, {std::string(section.substr(0, section.find('.')))});
    flag = FlagSize(incomplete);
    if (flag > budget / kShareOfFlag) {  // names of what is missing would push out what is there (WIRE-34)
      incomplete = {std::string()};
      flag = kAnywhereLength;
    }
  }
  if (rest + size + flag <= budget) {
    std::sort(kept.begin(), kept.end());
    return Make(kept, std::move(incomplete), rep.extensions);
  }
  if (rest + kAnywhereLength <= budget) return Make({}, {std::string()}, rep.extensions);
  return Make({}, {std::string()}, {});
}

std::vector<std::string_view> LineageAccess::Sections(const Lineage& lineage) {
  std::vector<std::string_view> sections;
  if (lineage.rep_ == nullptr) return sections;
  sections.reserve(lineage.rep_->parts.size() + 1);
  for (std::size_t i = 0; i < lineage.rep_->parts.size(); ++i) sections.push_back(lineage.rep_->Section(i));
  return sections;
}

std::size_t LineageAccess::EntryCount(const Lineage& lineage) {
  std::size_t count = 0;
  for (const std::string_view section : Sections(lineage)) count += CountEntries(section);
  return count;
}

std::size_t LineageAccess::Find(const Lineage& lineage, std::string_view head) {
  if (lineage.rep_ == nullptr) return kAbsent;
  const Rep& rep = *lineage.rep_;
  const auto place = std::lower_bound(rep.parts.begin(), rep.parts.end(), head,
                                      [&rep](const Rep::Part& part, std::string_view wanted) {
                                        return rep.text.view().substr(part.begin, part.head) < wanted;
                                      });
  const auto i = static_cast<std::size_t>(place - rep.parts.begin());
  return place != rep.parts.end() && rep.Head(i) == head ? i : kAbsent;
}

std::size_t LineageAccess::FindStore(const Lineage& lineage, std::string_view store) {
  // With the dot behind it, that it be compared as heads are.
  char head[3 * wire::kMaxStore + 1];
  if (store.size() >= sizeof head) return kAbsent;
  store.copy(head, store.size());
  head[store.size()] = '.';
  return Find(lineage, {head, store.size() + 1});
}

}  // namespace antipode
