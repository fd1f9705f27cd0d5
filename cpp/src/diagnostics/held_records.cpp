#include "diagnostics/held_records.h"

#include <chrono>
#include <utility>

namespace antipode {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(60);
constexpr std::size_t kMost = 1000;

}  // namespace

bool HeldRecords::IsOver(const std::string& key, TimePoint now) const {
  const auto written = written_.find(key);
  return written == written_.end() || now - written->second >= kPeriod;
}

bool HeldRecords::Admit(std::string key, const Record& record, TimePoint now) {
  if (IsOver(key, now) && held_.find(key) == held_.end()) {
    if (written_.size() >= kMost) {
      for (auto each = written_.begin(); each != written_.end();) {
        each = now - each->second >= kPeriod ? written_.erase(each) : std::next(each);
      }
    }
    if (written_.size() < kMost) {
      written_.insert_or_assign(std::move(key), now);
      return true;
    }
    key.clear();  // so many different ones within a minute: the others stand together
  }
  const auto [held, is_new] = held_.try_emplace(std::move(key), Held{record, 1});
  if (!is_new) held->second = Held{record, held->second.count + 1};
  return false;
}

std::vector<Record> HeldRecords::Due(TimePoint now, bool all) {
  std::vector<Record> due;
  for (auto each = held_.begin(); each != held_.end();) {
    if (!all && !IsOver(each->first, now)) {
      ++each;
      continue;
    }
    written_.insert_or_assign(each->first, now);
    due.push_back(std::move(each->second.last.Integer("count", each->second.count)));
    each = held_.erase(each);
  }
  return due;
}

}  // namespace antipode
