#include "tap_memory.h"

#include <algorithm>

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kMostWanted = 10000;
constexpr std::size_t kPlaces = 1024;

}  // namespace

bool TapMemory::Want(const std::string& mark) {
  if (seen_.Has(mark)) {
    wanted_.erase(mark);
    return true;
  }
  if (wanted_.size() >= kMostWanted) wanted_.clear();  // whoever waits asks again within the poll interval
  wanted_.insert(mark);
  return false;
}

bool TapMemory::Note(const std::string& mark) {
  seen_.Add(mark);
  return wanted_.erase(mark) != 0;
}

void TapMemory::Read(std::int64_t offset, std::size_t looks) {
  offset_ = offset;
  places_.emplace_back(offset, looks);
  if (places_.size() > kPlaces) places_.pop_front();
}

std::int64_t TapMemory::Resume(std::int64_t chunk, std::size_t looks) {
  if (offset_ && chunk > *offset_) return *offset_;
  if (offset_ && std::find(places_.begin(), places_.end(), std::pair(chunk, looks)) != places_.end()) return chunk;
  return BeginAnew(chunk);
}

bool TapMemory::IsElsewhere(std::int64_t offset, std::size_t looks) const {
  return !places_.empty() && places_.back().first == offset && places_.back().second != looks;
}

std::int64_t TapMemory::BeginAnew(std::int64_t chunk) {
  offset_.reset();
  places_.clear();
  return std::max<std::int64_t>(chunk - static_cast<std::int64_t>(remember_), 0);
}

}  // namespace antipode::rabbitmq
