#include "memory/node.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include "antipode/wire.h"
#include "memory/watch.h"

namespace antipode::memory {

std::string RandomName() {
  thread_local std::mt19937_64 chance{(std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()};
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(chance()));
  return name;
}

void Node::Boot() {
  for (NodeWatch* watch : watchers) watch->Replaced();
  instance = RandomName();
  data.clear();
  hashed.clear();
  marks.clear();
  ends.clear();
  epoch.clear();
  counter = 0;
  for (const Entry& entry : log) Apply(entry);
}

void Node::Append(Entry entry) {
  log.push_back(std::move(entry));
  Apply(log.back());
}

void Node::Apply(const Entry& entry) {
  if (entry.epoch != epoch && !epoch.empty()) ends[epoch] = counter;
  epoch = entry.epoch;
  counter = entry.counter;
  if (entry.mark) {
    std::uint64_t& marked = marks[entry.mark->first];
    marked = std::max(marked, entry.mark->second);
  } else if (!entry.value && versions != Versions::kObject) {
    data.erase(entry.key);
  } else {
    if (versions != Versions::kPosition && data.find(entry.key) == data.end()) {
      hashed[wire::HashedKey(entry.key)] = entry.key;
    }
    data.insert_or_assign(entry.key, Cell{entry.value, entry.lineage, entry.version});
  }
}

std::optional<TimePoint> Node::Fetch(TimePoint now) {
  if (source == nullptr) return std::nullopt;
  const std::size_t began = applied_from_source;
  std::optional<TimePoint> next;
  while (applied_from_source < source->log.size()) {
    Entry entry = source->log[applied_from_source];
    const TimePoint due = entry.due + lag;
    if (due > now) {
      next = due;
      break;
    }
    if (source->source != nullptr) entry.due = due;
    Append(std::move(entry));
    ++applied_from_source;
  }
  if (applied_from_source == began) return next;
  for (NodeWatch* watch : watchers) watch->Changed();
  return now;
}

std::vector<const Entry*> Node::Coming() const {
  std::vector<const Entry*> coming;
  if (source == nullptr || frozen || down) return coming;
  for (std::size_t at = applied_from_source; at < source->log.size(); ++at) coming.push_back(&source->log[at]);
  for (const Entry* later : source->Coming()) coming.push_back(later);
  return coming;
}

void Node::Take(std::size_t count) {
  if (count == 0) return;
  const std::size_t end = applied_from_source + count;
  if (end > source->log.size()) source->Take(end - source->log.size());
  while (applied_from_source < end) Append(source->log[applied_from_source++]);
  for (NodeWatch* watch : watchers) watch->Changed();
}

void Node::Follow(Node& from) {
  std::size_t kept = 0;
  while (kept < log.size() && kept < from.log.size() && log[kept].epoch == from.log[kept].epoch &&
         log[kept].counter == from.log[kept].counter) {
    ++kept;
  }
  source = &from;
  log.erase(log.begin() + static_cast<std::ptrdiff_t>(kept), log.end());
  applied_from_source = kept;
  Boot();
}

const Cell* Node::Find(const std::string& key) const {
  auto found = data.find(key);
  if (found == data.end()) {
    const auto plain = hashed.find(key);
    if (plain != hashed.end()) found = data.find(plain->second);
  }
  return found == data.end() ? nullptr : &found->second;
}

}  // namespace antipode::memory
