#include "returns.h"

#include <algorithm>

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kMostReturning = 1000;
constexpr std::string_view kSettled = "it has been acknowledged or rejected already";

}  // namespace

void Returns::Opened(const std::shared_ptr<DeliveredState>& delivered) { open_[delivered->tag] = delivered; }

void Returns::GiveBack(std::uint64_t tag, Clock::time_point due) {
  open_.erase(tag);
  due_[tag] = due;
  returning_.insert(tag);
  if (returning_.size() > kMostReturning) returning_.erase(returning_.begin());
}

std::vector<std::uint64_t> Returns::TakeDue(Clock::time_point now) {
  std::vector<std::uint64_t> tags;
  for (auto each = due_.begin(); each != due_.end();) {
    if (each->second > now) {
      ++each;
      continue;
    }
    tags.push_back(each->first);
    each = due_.erase(each);
  }
  return tags;
}

std::optional<Returns::Clock::time_point> Returns::NextDue() const {
  std::optional<Clock::time_point> next;
  for (const auto& [tag, due] : due_) next = next ? std::min(*next, due) : due;
  return next;
}

std::vector<std::uint64_t> Returns::Settling(std::uint64_t tag, bool multiple) {
  const auto is_meant = [&](std::uint64_t other) { return other == tag || (multiple && (other < tag || tag == 0)); };
  for (auto each = open_.begin(); each != open_.end();) {
    if (!is_meant(each->first)) {
      ++each;
      continue;
    }
    if (const auto delivered = each->second.lock()) delivered->Settle(kSettled);
    each = open_.erase(each);
  }
  std::vector<std::uint64_t> first;
  for (auto each = due_.begin(); each != due_.end();) {
    if (!is_meant(each->first)) {
      ++each;
      continue;
    }
    if (each->first != tag) first.push_back(each->first);
    each = due_.erase(each);
  }
  return first;
}

void Returns::Forget(std::string_view why) {
  due_.clear();
  returning_.clear();
  for (const auto& [tag, open] : open_) {
    if (const auto delivered = open.lock()) delivered->Settle(why);
  }
  open_.clear();
}

}  // namespace antipode::rabbitmq
