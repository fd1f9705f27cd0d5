#include "lineage_rep.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "antipode/wire.h"
#include "section.h"

namespace antipode {
namespace {

using Rep = LineageAccess::Rep;

// What an anonymous flag adds to a text: `~_.i`.
constexpr std::size_t kAnywhereLength = 4;

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

Lineage LineageAccess::Of(Parsed&& parsed, std::string_view text) {
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

Lineage LineageAccess::Fitted(const Lineage& lineage, std::size_t budget) {
  const Rep& rep = *lineage.rep_;
  std::vector<std::string_view> by_length = Sections(lineage);
  std::vector<std::string> incomplete = rep.incomplete;
  std::size_t rest = wire::kEmptyText.size();
  for (const std::string& extension : rep.extensions) rest += extension.size() + 1;
  std::size_t flag = incomplete.empty() ? 0 : FlagText(incomplete).size() + 1;
  std::size_t size = 0;
  for (const std::string_view section : by_length) size += section.size() + 1;
  std::size_t entries = EntryCount(lineage);
  std::sort(by_length.begin(), by_length.end(), [](std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  const bool anywhere = IsAnywhere(incomplete);
  const std::vector<std::string> known = incomplete;
  while (!by_length.empty() && (rest + size + flag > budget || entries > wire::kMaxEntries)) {
    const std::string_view section = by_length.back();
    by_length.pop_back();
    size -= section.size() + 1;
    entries -= CountEntries(section);
    const std::string store(section.substr(0, section.find('.')));
    if (!anywhere && !std::binary_search(known.begin(), known.end(), store)) {
      incomplete.push_back(store);
      flag = (flag == 0 ? kAnywhereLength : flag) + store.size() + 1;
    }
  }
  if (rest + size + flag <= budget) {
    std::sort(incomplete.begin(), incomplete.end());
    std::sort(by_length.begin(), by_length.end());
    return Make(by_length, std::move(incomplete), rep.extensions);
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
