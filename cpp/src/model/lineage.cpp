#include "antipode/lineage.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <utility>

#include "antipode/wire.h"
#include "model/lineage_rep.h"
#include "model/parse.h"
#include "model/section.h"
#include "model/spelling.h"
#include "model/write_id_access.h"

namespace antipode {
namespace {

using Rep = LineageAccess::Rep;

// The counter of an identifier that is a position; its version is ordered.
std::uint64_t CounterOf(const WriteId& id) { return id.ordered()->counter; }

WriteId IdOf(std::string_view store, const Entry& entry) {
  Version version;
  if (entry.is_opaque()) {
    version = Opaque{wire::Unspell(entry.last)};
  } else {
    version = Ordered{wire::Unspell(entry.epoch), entry.counter};
  }
  return WriteIdAccess::Make(wire::Unspell(store), wire::Unspell(entry.key), std::move(version));
}

void AddIds(std::string_view section, std::vector<WriteId>& ids) {
  const Section opened = Section::Open(section);
  for (const Entry& entry : opened.entries()) ids.push_back(IdOf(opened.store(), entry));
}

std::vector<std::string> Unspelled(const std::vector<std::string>& names) {
  std::vector<std::string> unspelled;
  unspelled.reserve(names.size());
  for (const std::string& name : names) unspelled.push_back(wire::Unspell(name));
  return unspelled;
}

// Joins what may be many sections of few stores; views and texts that were made stay alive in `made`.
class Joiner {
 public:
  explicit Joiner(const Lineage& base) : sections_(LineageAccess::Sections(base)) {}

  void Add(std::string section) {
    made_.push_back(std::move(section));
    const std::string_view added = made_.back();
    const std::string_view head = SectionHead(added);
    const auto place = std::lower_bound(sections_.begin(), sections_.end(), head,
                                        [](std::string_view a, std::string_view b) { return SectionHead(a) < b; });
    if (place == sections_.end() || SectionHead(*place) != head) {
      sections_.insert(place, added);
    } else if (*place != added) {
      made_.push_back(JoinSections(*place, added));
      *place = made_.back();
    }
  }

  const std::vector<std::string_view>& sections() const { return sections_; }

 private:
  std::vector<std::string_view> sections_;
  std::deque<std::string> made_;
};

}  // namespace

std::string_view ToString(Order order) {
  switch (order) {
    case Order::kBefore:
      return "before";
    case Order::kAfter:
      return "after";
    case Order::kEqual:
      return "equal";
    case Order::kConcurrent:
      return "concurrent";
  }
  return "concurrent";
}

Lineage::Lineage(const WriteId& id) : Lineage(Lineage().Including(id)) {}
Lineage::Lineage(const std::vector<WriteId>& ids) : Lineage(Lineage().Including(ids)) {}

Result<Lineage> Lineage::Deserialize(std::string_view text) {
  const std::string_view stripped = wire::Strip(text);
  Result<ParsedText> parsed = Parse(stripped);
  if (!parsed) return parsed.error();
  return LineageAccess::Of(*std::move(parsed), stripped);
}

std::string Lineage::Serialize() const {
  if (rep_ == nullptr) return std::string(wire::kEmptyText);
  // A text so short has not too many entries.
  if (rep_->text.size() <= wire::kMaxKey) return std::string(rep_->text.view());
  const Lineage fitted = Fit(wire::kMaxBytes);
  return fitted.rep_ == nullptr ? std::string(wire::kEmptyText) : std::string(fitted.rep_->text.view());
}

// Joining and taking away

Lineage Lineage::Including(const WriteId& id) const {
  if (id.is_position() && rep_ != nullptr) {
    // The common case: a position onto the one that is there, raised in place without opening anything.
    const wire::SpelledName store(id.store());
    const std::size_t place = LineageAccess::FindStore(*this, store.text());
    if (place != LineageAccess::kAbsent) {
      const std::string_view section = rep_->Section(place);
      const std::string_view position = OnlyPositionHead(section);
      const std::size_t before = store.text().size() + 2;  // the store and two dots
      const wire::SpelledName epoch(id.ordered()->epoch);
      if (!position.empty() && position.substr(before, position.size() - before - 1) == epoch.text()) {
        if (antipode::CounterOf(section.substr(position.size())) >= CounterOf(id)) return *this;
        char digits[20];
        const char* const end = std::to_chars(std::begin(digits), std::end(digits), CounterOf(id)).ptr;
        const std::string_view counter(digits, static_cast<std::size_t>(end - digits));
        return LineageAccess::Replaced(*this, place, position.size(), counter);
      }
    }
  }
  Joiner joiner(*this);
  joiner.Add(id.Section());
  return LineageAccess::With(*this, joiner.sections());
}

Lineage Lineage::Including(const std::vector<WriteId>& ids) const {
  if (ids.empty()) return *this;
  if (ids.size() == 1) return Including(ids.front());
  Joiner joiner(*this);
  std::vector<std::string> sections;
  sections.reserve(ids.size());
  for (const WriteId& id : ids) sections.push_back(id.Section());
  std::sort(sections.begin(), sections.end());
  // The writes to one store become one section first, so that it is opened once.
  for (std::size_t i = 0; i < sections.size();) {
    const std::string head(SectionHead(sections[i]));
    std::string joined = sections[i];
    for (++i; i < sections.size() && SectionHead(sections[i]) == head; ++i) {
      joined += '.';
      joined.append(sections[i], head.size(), std::string::npos);
    }
    joiner.Add(Section::Open(joined).Text());
  }
  return LineageAccess::With(*this, joiner.sections());
}

Lineage Lineage::Union(const Lineage& other) const {
  if (other.rep_ == nullptr || other.rep_ == rep_) return *this;
  if (rep_ == nullptr) return other;
  std::deque<std::string> made;
  std::vector<std::string_view> sections;
  const Rep& a = *rep_;
  const Rep& b = *other.rep_;
  sections.reserve(a.parts.size() + b.parts.size());
  bool same = true;
  for (std::size_t i = 0, j = 0; i < a.parts.size() || j < b.parts.size();) {
    const int order = i == a.parts.size() ? 1 : j == b.parts.size() ? -1 : a.Head(i).compare(b.Head(j));
    if (order < 0) {
      sections.push_back(a.Section(i++));
    } else if (order > 0) {
      sections.push_back(b.Section(j++));
      same = false;
    } else {
      const std::string_view mine = a.Section(i++);
      const std::string_view theirs = b.Section(j++);
      if (mine != theirs) {
        made.push_back(JoinSections(mine, theirs));
        same = same && made.back() == mine;
        sections.push_back(made.back());
      } else {
        sections.push_back(mine);
      }
    }
  }
  std::vector<std::string> incomplete = JoinIncomplete(a.incomplete, b.incomplete);
  std::vector<std::string> extensions;
  std::set_union(a.extensions.begin(), a.extensions.end(), b.extensions.begin(), b.extensions.end(),
                 std::back_inserter(extensions));
  if (same && incomplete == a.incomplete && extensions == a.extensions) return *this;
  return LineageAccess::Make(sections, std::move(incomplete), std::move(extensions));
}

Lineage Lineage::Without(const WriteId& id) const { return Without(Lineage(id)); }

Lineage Lineage::Without(const Lineage& other) const {
  if (rep_ == nullptr || other.rep_ == nullptr) return *this;
  return LineageAccess::Subtract(*this, other, rep_->incomplete, rep_->extensions);
}

Lineage Lineage::WithoutStore(std::string_view store) const {
  if (rep_ == nullptr) return *this;
  const std::string spelled = wire::Spell(store);
  const std::string head = spelled + ".";
  std::vector<std::string_view> sections = LineageAccess::Sections(*this);
  sections.erase(std::remove_if(sections.begin(), sections.end(),
                                [&head](std::string_view section) { return SectionHead(section) == head; }),
                 sections.end());
  std::vector<std::string> incomplete = rep_->incomplete;
  incomplete.erase(std::remove(incomplete.begin(), incomplete.end(), spelled), incomplete.end());
  return LineageAccess::Make(sections, std::move(incomplete), rep_->extensions);
}

Lineage Lineage::AddedTo(const Lineage& base) const {
  if (rep_ == nullptr || base.rep_ == nullptr) return *this;
  std::vector<std::string> incomplete;
  if (!IsAnywhere(base.rep_->incomplete)) {
    std::set_difference(rep_->incomplete.begin(), rep_->incomplete.end(), base.rep_->incomplete.begin(),
                        base.rep_->incomplete.end(), std::back_inserter(incomplete));
  }
  std::vector<std::string> extensions;
  std::set_difference(rep_->extensions.begin(), rep_->extensions.end(), base.rep_->extensions.begin(),
                      base.rep_->extensions.end(), std::back_inserter(extensions));
  return LineageAccess::Subtract(*this, base, std::move(incomplete), std::move(extensions));
}

Lineage Lineage::Beyond(const Lineage& other) const { return LineageAccess::Subtract(*this, other, {}, {}); }

// Comparing

bool Lineage::IsCoveredBy(const Lineage& other) const {
  if (rep_ == nullptr || rep_ == other.rep_) return true;
  for (std::size_t i = 0; i < rep_->parts.size(); ++i) {
    const std::size_t place = LineageAccess::Find(other, rep_->Head(i));
    if (place == LineageAccess::kAbsent) return false;
    if (!SubtractSections(rep_->Section(i), other.rep_->Section(place)).empty()) return false;
  }
  return true;
}

bool Lineage::Covers(const WriteId& id) const { return Lineage(id).IsCoveredBy(*this); }

Order Lineage::Compare(const Lineage& other) const {
  const bool below = IsCoveredBy(other);
  const bool above = other.IsCoveredBy(*this);
  if (below) return above ? Order::kEqual : Order::kBefore;
  return above ? Order::kAfter : Order::kConcurrent;
}

bool Lineage::Equals(const Lineage& other) const {
  if (rep_ == other.rep_) return true;
  const std::vector<std::string_view> mine = LineageAccess::Sections(*this);
  const std::vector<std::string_view> theirs = LineageAccess::Sections(other);
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), [](std::string_view a, std::string_view b) {
    return a == b || (SectionHead(a) == SectionHead(b) && Section::Open(a).Text() == Section::Open(b).Text());
  });
}

std::size_t Lineage::Hash() const {
  std::size_t hash = 0;
  for (const std::string_view section : LineageAccess::Sections(*this)) {
    hash = hash * 1000003 + std::hash<std::string>()(Section::Open(section).Text());
  }
  return hash;
}

// Looking in

std::size_t Lineage::size() const {
  std::size_t count = 0;
  for (const std::string_view section : LineageAccess::Sections(*this)) {
    count += Section::Open(section).entries().size();
  }
  return count;
}

std::vector<WriteId> Lineage::ids() const {
  std::vector<WriteId> ids;
  for (const std::string_view section : LineageAccess::Sections(*this)) AddIds(section, ids);
  return ids;
}

std::vector<std::string> Lineage::stores() const {
  std::vector<std::string> names;
  for (const std::string_view section : LineageAccess::Sections(*this)) {
    names.push_back(wire::Unspell(section.substr(0, section.find('.'))));
  }
  return names;
}

std::vector<WriteId> Lineage::OfStore(std::string_view store) const {
  std::vector<WriteId> ids;
  if (const auto section = SectionText(store)) AddIds(*section, ids);
  return ids;
}

std::optional<std::string_view> Lineage::SectionText(std::string_view store) const {
  const std::size_t place = LineageAccess::FindStore(*this, wire::SpelledName(store).text());
  if (place == LineageAccess::kAbsent) return std::nullopt;
  return rep_->Section(place);
}

std::optional<std::uint64_t> Lineage::OnlyPosition(std::string_view store, std::string_view epoch) const {
  const auto section = SectionText(store);
  if (!section) return std::nullopt;
  const std::string_view head = OnlyPositionHead(*section);
  if (head.empty()) return std::nullopt;
  const std::size_t before = head.find('.') + 2;
  if (head.substr(before, head.size() - before - 1) != wire::SpelledName(epoch).text()) return std::nullopt;
  return antipode::CounterOf(section->substr(head.size()));
}

// Incompleteness

std::vector<std::string> Lineage::incomplete() const {
  return rep_ == nullptr ? std::vector<std::string>() : Unspelled(rep_->incomplete);
}

std::vector<std::string> Lineage::extensions() const {
  return rep_ == nullptr ? std::vector<std::string>() : rep_->extensions;
}

Lineage Lineage::WithoutExtensionsOfBranches() const {
  if (rep_ == nullptr || rep_->extensions.empty()) return *this;
  std::vector<std::string> kept;
  for (const std::string& extension : rep_->extensions) {
    const std::string tag = extension.substr(2, extension.find('.', 2) - 2);
    if (tag != "task" && tag != "within") kept.push_back(extension);
  }
  if (kept.size() == rep_->extensions.size()) return *this;
  return LineageAccess::Make(LineageAccess::Sections(*this), rep_->incomplete, std::move(kept));
}

bool Lineage::IsComplete() const { return rep_ == nullptr || rep_->incomplete.empty(); }

bool Lineage::IsComplete(const std::vector<std::string>& stores) const {
  if (IsComplete()) return true;
  if (IsAnywhere(rep_->incomplete)) return false;
  return std::none_of(stores.begin(), stores.end(), [this](const std::string& store) {
    return std::binary_search(rep_->incomplete.begin(), rep_->incomplete.end(), wire::Spell(store));
  });
}

Lineage Lineage::MarkedIncomplete(const std::vector<std::string>& stores) const {
  std::vector<std::string> marks;
  for (const std::string& store : stores) marks.push_back(wire::Spell(store));
  if (marks.empty()) marks.emplace_back();
  std::sort(marks.begin(), marks.end());
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  if (rep_ == nullptr) return LineageAccess::Make({}, JoinIncomplete({}, marks), {});
  std::vector<std::string> joined = JoinIncomplete(rep_->incomplete, marks);
  if (joined == rep_->incomplete) return *this;
  return LineageAccess::Make(LineageAccess::Sections(*this), std::move(joined), rep_->extensions);
}

Lineage Lineage::Vouched() const {
  if (IsComplete()) return *this;
  return LineageAccess::Make(LineageAccess::Sections(*this), {}, rep_->extensions);
}

// Size

Lineage Lineage::Fit(std::size_t budget, const std::vector<std::string>& changed) const {
  if (rep_ == nullptr) return *this;
  budget = std::min(budget, wire::kMaxBytes);
  if (rep_->text.size() <= budget && LineageAccess::EntryCount(*this) <= wire::kMaxEntries) return *this;
  return LineageAccess::Fitted(*this, budget, changed);
}

std::ostream& operator<<(std::ostream& out, const Lineage& lineage) { return out << lineage.Serialize(); }

}  // namespace antipode
