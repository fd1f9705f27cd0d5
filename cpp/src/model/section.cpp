#include "model/section.h"

#include <algorithm>
#include <tuple>

#include "model/parse.h"

namespace antipode {
namespace {

constexpr auto kNone = std::string_view::npos;

void AddEntries(std::string_view text, std::vector<Entry>& entries) {
  std::size_t begin = text.find('.') + 1;
  while (begin != 0 && begin <= text.size()) {
    const std::size_t epoch = text.find('.', begin) + 1;
    const std::size_t last = text.find('.', epoch) + 1;
    const std::size_t end = std::min(text.find('.', last), text.size());
    Entry entry;
    entry.text = text.substr(begin, end - begin);
    entry.key = text.substr(begin, epoch - 1 - begin);
    entry.epoch = text.substr(epoch, last - 1 - epoch);
    entry.last = text.substr(last, end - last);
    if (!entry.is_opaque()) entry.counter = CounterOf(entry.last);
    entries.push_back(entry);
    begin = end + 1;
  }
}

// Positions first, then what each absorbs or supersedes directly behind the greatest.
bool ByPlace(const Entry& a, const Entry& b) {
  const auto place = [](const Entry& e) {
    return std::make_tuple(e.key, e.epoch, e.is_opaque() ? e.last : std::string_view());
  };
  const auto first = place(a);
  const auto second = place(b);
  return first != second ? first < second : a.counter > b.counter;
}

bool SamePlace(const Entry& a, const Entry& b) {
  return a.key == b.key && a.epoch == b.epoch && (!a.is_opaque() || a.last == b.last);
}

bool ByText(const Entry& a, const Entry& b) { return a.text < b.text; }

// The positions among entries that are ordered by place: they come first.
const Entry* PositionOf(const std::vector<Entry>& by_place, std::string_view epoch) {
  for (const Entry& entry : by_place) {
    if (!entry.is_position()) return nullptr;
    if (entry.epoch == epoch) return &entry;
  }
  return nullptr;
}

void Normalise(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), ByPlace);
  entries.erase(std::unique(entries.begin(), entries.end(), SamePlace), entries.end());
  if (!entries.empty() && entries.front().is_position()) {
    std::vector<Entry> kept;
    kept.reserve(entries.size());
    for (const Entry& entry : entries) {
      const Entry* position = entry.is_position() || entry.is_opaque() ? nullptr : PositionOf(entries, entry.epoch);
      if (position == nullptr || position->counter < entry.counter) kept.push_back(entry);
    }
    entries = std::move(kept);
  }
  std::sort(entries.begin(), entries.end(), ByText);
}

}  // namespace

Section Section::Open(std::string_view text, std::string_view other) {
  Section section;
  section.store_ = text.substr(0, text.find('.'));
  AddEntries(text, section.entries_);
  if (!other.empty()) AddEntries(other, section.entries_);
  Normalise(section.entries_);
  return section;
}

Section Section::Minus(const Section& other) const {
  std::vector<Entry> covering = other.entries_;
  std::sort(covering.begin(), covering.end(), ByPlace);
  const auto covers = [&covering](const Entry& entry) {
    const auto same = std::lower_bound(covering.begin(), covering.end(), entry, [](const Entry& a, const Entry& b) {
      return std::make_tuple(a.key, a.epoch, a.is_opaque() ? a.last : std::string_view()) <
             std::make_tuple(b.key, b.epoch, b.is_opaque() ? b.last : std::string_view());
    });
    if (same != covering.end() && SamePlace(*same, entry) && same->counter >= entry.counter) return true;
    if (entry.is_opaque()) return false;
    const Entry* position = PositionOf(covering, entry.epoch);
    return position != nullptr && position->counter >= entry.counter;
  };
  Section rest;
  rest.store_ = store_;
  for (const Entry& entry : entries_) {
    if (!covers(entry)) rest.entries_.push_back(entry);
  }
  return rest;
}

std::string Section::Text() const {
  std::size_t size = store_.size();
  for (const Entry& entry : entries_) size += entry.text.size() + 1;
  std::string text;
  text.reserve(size);
  text += store_;
  for (const Entry& entry : entries_) {
    text += '.';
    text += entry.text;
  }
  return text;
}

std::string_view OnlyPositionHead(std::string_view section) {
  const std::size_t key = section.find('.');
  if (key + 1 >= section.size() || section[key + 1] != '.') return {};
  const std::size_t epoch = section.find('.', key + 2);
  if (epoch == kNone || section.find('.', epoch + 1) != kNone) return {};
  return section.substr(0, epoch + 1);
}

std::string JoinSections(std::string_view a, std::string_view b) {
  if (a == b) return std::string(a);
  const std::string_view head = OnlyPositionHead(a);
  if (!head.empty() && head == OnlyPositionHead(b)) {
    return std::string(CounterOf(a.substr(head.size())) >= CounterOf(b.substr(head.size())) ? a : b);
  }
  return Section::Open(a, b).Text();
}

std::string SubtractSections(std::string_view a, std::string_view b) {
  if (a == b) return {};
  const Section rest = Section::Open(a).Minus(Section::Open(b));
  return rest.empty() ? std::string() : rest.Text();
}

}  // namespace antipode
