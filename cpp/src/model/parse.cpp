#include "model/parse.h"

#include <algorithm>
#include <cstdint>

#include "antipode/wire.h"
#include "model/quote.h"
#include "model/spelling.h"

namespace antipode {
namespace {

using wire::ScanName;

constexpr std::size_t kShown = 80;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads one text from left to right; every `Read…` moves `p_` behind what it read, or answers false.
class Reader {
 public:
  explicit Reader(std::string_view text) : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}

  bool Read(ParsedText& parsed) {
    if (p_ == end_ || *p_ != '1') return false;
    ++p_;
    while (p_ != end_) {
      if (*p_ != '~') return false;
      ++p_;
      const char* const begin = p_;
      if (end_ - p_ >= 2 && p_[0] == '_' && p_[1] == '.') {
        if (!ReadExtension(begin, parsed)) return false;
      } else {
        if (extended_ || !ReadSection()) return false;
        parsed.sections.push_back({Distance(begin_, begin), Distance(begin, p_), head_});
      }
    }
    return true;
  }

  std::size_t entries() const { return entries_; }
  bool extended() const { return extended_; }
  std::string_view complaint() const { return complaint_; }

 private:
  static std::uint32_t Distance(const char* from, const char* to) { return static_cast<std::uint32_t>(to - from); }
  bool AtDot() const { return p_ != end_ && *p_ == '.'; }
  bool AtPartEnd() const { return p_ == end_ || *p_ == '~'; }

  bool ReadSection() {
    const char* const begin = p_;
    std::size_t octets = 0;
    if (!ScanName(p_, end_, octets) || octets == 0 || octets > wire::kMaxStore || !AtDot()) return false;
    head_ = Distance(begin, p_) + 1;
    do {
      if (!ReadEntry()) return false;
      ++entries_;
    } while (AtDot());
    return AtPartEnd();
  }

  bool ReadEntry() {
    const char* const key = ++p_;
    std::size_t octets = 0;
    if (!ScanName(p_, end_, octets) || !AtDot()) return false;
    const bool position = p_ == key;
    if (static_cast<std::size_t>(p_ - key) > wire::kMaxKey) {
      complaint_ = "a key of more than 1024 characters";
      return false;
    }
    ++p_;
    if (end_ - p_ >= 2 && p_[0] == '_' && p_[1] == '.') {
      p_ += 2;
      return !position && ScanName(p_, end_, octets) && octets > 0;
    }
    if (!ScanName(p_, end_, octets) || octets > wire::kMaxEpoch || (position && octets == 0) || !AtDot()) return false;
    ++p_;
    return ReadCounter();
  }

  bool ReadCounter() {
    constexpr std::string_view kMost = "18446744073709551615";
    const char* const begin = p_;
    p_ = std::find_if_not(begin, end_, IsDigit);
    const std::string_view digits(begin, static_cast<std::size_t>(p_ - begin));
    if (digits.empty() || (digits.front() == '0' && digits.size() > 1)) return false;
    return digits.size() < kMost.size() || (digits.size() == kMost.size() && digits <= kMost);
  }

  bool ReadExtension(const char* begin, ParsedText& parsed) {
    if (sealed_) {
      complaint_ = "something follows the seal of a lineage";
      return false;
    }
    extended_ = true;
    p_ += 2;
    const char* const tag = p_;
    while (p_ != end_ && (IsDigit(*p_) || (*p_ >= 'a' && *p_ <= 'z'))) ++p_;
    const std::string_view name(tag, static_cast<std::size_t>(p_ - tag));
    if (name.empty()) return false;
    const bool flag = name == "i";
    if (flag && AtPartEnd()) parsed.incomplete.emplace_back();
    while (AtDot()) {
      const char* const field = ++p_;
      std::size_t octets = 0;
      if (!ScanName(p_, end_, octets)) return false;
      if (!flag) continue;
      if (octets == 0 || octets > wire::kMaxStore) return false;
      parsed.incomplete.emplace_back(field, static_cast<std::size_t>(p_ - field));
    }
    if (!AtPartEnd()) return false;
    sealed_ = name == "h";  // it speaks of the text that it came with, and is made anew on the way out
    if (!flag && !sealed_) parsed.extensions.emplace_back(begin, static_cast<std::size_t>(p_ - begin));
    return true;
  }

  const char* const begin_;
  const char* p_;
  const char* const end_;
  std::uint32_t head_ = 0;  // of the section that was read last
  std::size_t entries_ = 0;
  bool extended_ = false;
  bool sealed_ = false;
  std::string_view complaint_;
};

Error Malformed(const std::string& words) { return Error{ErrorCode::kMalformedLineage, "AP405", words}; }

void SortEachOnce(std::vector<std::string_view>& texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
}

}  // namespace

std::size_t CountEntries(std::string_view section) {
  return static_cast<std::size_t>(std::count(section.begin(), section.end(), '.')) / 3;
}

std::uint64_t CounterOf(std::string_view digits) {
  std::uint64_t counter = 0;
  for (const char digit : digits) counter = counter * 10 + static_cast<std::uint64_t>(digit - '0');
  return counter;
}

Result<ParsedText> Parse(std::string_view text) {
  if (text.size() > wire::kMaxBytes) {
    return Malformed("a lineage of " + std::to_string(text.size()) + " bytes; at most " +
                     std::to_string(wire::kMaxBytes) + " are taken");
  }
  ParsedText parsed;
  Reader reader(text);
  if (!reader.Read(parsed)) {
    if (!reader.complaint().empty()) return Malformed(std::string(reader.complaint()));
    return Malformed("not a lineage: " + Quoted(text.substr(0, kShown)));
  }
  if (reader.entries() > wire::kMaxEntries) {
    return Malformed("a lineage of " + std::to_string(reader.entries()) + " entries; at most " +
                     std::to_string(wire::kMaxEntries) + " are taken");
  }
  auto& sections = parsed.sections;
  const auto head = [text](const SectionPlace& place) { return text.substr(place.begin, place.head); };
  const auto before = [head](const SectionPlace& a, const SectionPlace& b) { return head(a) < head(b); };
  const auto not_before = [before](const SectionPlace& a, const SectionPlace& b) { return !before(a, b); };
  const bool ordered = std::adjacent_find(sections.begin(), sections.end(), not_before) == sections.end();
  if (!ordered) {
    std::sort(sections.begin(), sections.end(), before);
    if (std::adjacent_find(sections.begin(), sections.end(), not_before) != sections.end()) {
      return Malformed("a store stands twice in a lineage");
    }
  }
  parsed.plain = ordered && !reader.extended();
  if (reader.extended()) {
    SortEachOnce(parsed.extensions);
    SortEachOnce(parsed.incomplete);
    if (!parsed.incomplete.empty() && parsed.incomplete.front().empty()) parsed.incomplete.resize(1);
  }
  return parsed;
}

}  // namespace antipode
