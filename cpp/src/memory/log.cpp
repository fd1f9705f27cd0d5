#include "memory/log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "memory/monkey.h"
#include "memory/watch.h"

namespace antipode::memory {
namespace {

/// A mark is written when an epoch is first met, and at most so often while the primary writes.
constexpr Duration kMarkPeriod = std::chrono::seconds(1);

// A mistake in a test's words: nothing after it would mean anything.
[[noreturn]] void Mistake(const std::string& message) {
  std::fprintf(stderr, "antipode::MemoryStore: %s\n", WithCode(message, "AP501").c_str());
  std::abort();
}

StaleChoice ChoiceOf(const MemoryOptions& options) {
  if (options.choice && (options.monkey || options.seed != 0)) Mistake("a choice, and a seed: want one of them");
  if (options.seed != 0 && !options.monkey) Mistake("a seed without monkey = true");
  return options.monkey ? Seeded(options.seed, options.regions) : options.choice;
}

constexpr const char* kNoClock = "a lag in monkey mode: there is no clock, each read chooses how stale it is";

}  // namespace

NodeWatch::~NodeWatch() { log_.Unwatch(node_, *this); }

Log::Log(const MemoryOptions& options)
    : name_(options.name), versions_(options.versions), choice_(ChoiceOf(options)) {
  if (options.regions.empty()) Mistake("no regions: want different names, the primary's first");
  for (const std::string& region : options.regions) {
    if (std::count(options.regions.begin(), options.regions.end(), region) != 1) {
      Mistake("regions: want different names, the primary's first: " + region);
    }
    const auto lag = options.lags.find(region);
    const bool is_primary = nodes_.empty();
    const Duration late = lag != options.lags.end() ? lag->second : is_primary ? Duration::zero() : options.lag;
    if (choice_ && late != Duration::zero()) Mistake(kNoClock);
    nodes_.push_back(std::make_unique<Node>(region, late, versions_));
  }
  primary_ = nodes_.front().get();
  BeginEpoch();
  for (const auto& node : nodes_) {
    if (node.get() == primary_) continue;  // a replica begins as a copy of its primary
    node->log = primary_->log;
    node->Follow(*primary_);
  }
  ticker_ = std::thread([this] { Run(); });
}

Log::~Log() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  ticker_.join();
}

Node& Log::NodeOf(std::string_view region) {
  for (const auto& node : nodes_) {
    if (node->region == region) return *node;
  }
  Mistake("no region " + std::string(region) + " in " + name_);
}

// Faults

void Log::SetLag(std::string_view region, Duration lag) {
  if (choice_) Mistake(kNoClock);
  const std::lock_guard<std::mutex> lock(mutex_);
  NodeOf(region).lag = lag;
  Tick();
}

void Log::Freeze(std::string_view region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CatchUp();
  NodeOf(region).frozen = true;
}

void Log::Heal(std::string_view region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  NodeOf(region).frozen = false;
  Tick();
}

void Log::Promote(std::string_view region, std::size_t lose) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CatchUp();
  Node& node = NodeOf(region);
  if (&node == primary_) Mistake(std::string(region) + " is the primary already");
  std::vector<Entry> log = primary_->log;
  for (std::size_t lost = 0; lost < lose;) {
    if (log.empty()) Mistake("lose: fewer writes were made");
    lost += log.back().mark ? 0 : 1;
    log.pop_back();
  }
  node.log = std::move(log);
  node.frozen = false;
  node.Boot();
  primary_ = &node;
  node.source = nullptr;
  BeginEpoch();
  for (const auto& other : nodes_) {
    if (other.get() != &node) other->Follow(node);
  }
  Tick();
}

void Log::Repoint(std::string_view region, std::string_view source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CatchUp();
  Node& node = NodeOf(region);
  Node& origin = NodeOf(source);
  for (const Node* upstream = &origin; upstream != nullptr; upstream = upstream->source) {
    if (upstream == &node) {
      Mistake(std::string(source) + " replicates from " + std::string(region) + ": that would be a circle");
    }
  }
  node.Follow(origin);
  Tick();
}

void Log::Restart(std::string_view region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CatchUp();
  Node& node = NodeOf(region);
  node.down = false;
  node.Boot();
  if (&node == primary_) BeginEpoch();
  Tick();
}

void Log::Stop(std::string_view region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CatchUp();
  NodeOf(region).down = true;
}

void Log::LoseNextAnswer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_lost_ = true;
}

void Log::Settle(std::string_view epoch, std::uint64_t counter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Append({}, std::nullopt, {}, std::pair(std::string(epoch), counter));
  Tick();
}

std::string Log::Instance(std::string_view region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return NodeOf(region).instance;
}

// Writing and reading

// A history with one writer begins; the mark of the one before lies behind all that survived of it.
void Log::BeginEpoch() {
  primary_->down = false;
  const std::string ended = primary_->epoch;
  const std::uint64_t end = primary_->counter;
  counter_ = 0;
  epoch_ = RandomName();
  if (!ended.empty()) Append({}, std::nullopt, {}, std::pair(ended, end));
  Mark();
}

void Log::Mark() {
  marked_at_ = Clock::now();
  Append({}, std::nullopt, {}, std::pair(epoch_, primary_->epoch == epoch_ ? primary_->counter : 0));
}

Version Log::Append(const std::string& key, std::optional<std::string> value, std::string lineage,
                    std::optional<std::pair<std::string, std::uint64_t>> mark) {
  ++counter_;
  Version version = Ordered{epoch_, counter_};
  // A version that no object ever had or will have, whatever is deleted, lost or started anew (SHIM-10).
  if (versions_ == Versions::kOpaque) version = Opaque{(value ? "" : "deleted-") + RandomName()};
  if (versions_ == Versions::kObject) version = Ordered{"", clock_.Next()};
  primary_->Append(
      {Clock::now(), epoch_, counter_, key, std::move(value), std::move(lineage), version, std::move(mark)});
  return version;
}

Log::WriteOutcome Log::Write(Node& node, const std::string& key, std::optional<std::string> value, std::string lineage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (node.down) {
    return {MemoryOutcome::kUnreachable, name_ + ": the server in " + node.region + " refuses connections", {}};
  }
  if (&node != primary_) {
    return {MemoryOutcome::kReadOnly, name_ + ": the server in " + node.region + " is a read-only replica", {}};
  }
  const auto there = node.data.find(key);
  if (!value && versions_ != Versions::kPosition && (there == node.data.end() || !there->second.value)) {
    if (there == node.data.end()) return {};
    return {MemoryOutcome::kDone, {}, there->second.version};
  }
  const Version version = Append(key, std::move(value), std::move(lineage));
  if (Clock::now() - marked_at_ > kMarkPeriod) Mark();
  Tick();
  if (std::exchange(answers_lost_, false)) {
    return {MemoryOutcome::kUnreachable, name_ + ": the connection broke before the answer came", {}};
  }
  return {MemoryOutcome::kDone, {}, version};
}

std::optional<Log::StoredObject> Log::Read(Node& node, const std::string& key) {
  if (choice_) Choose(node, key);
  return Look(node, key);
}

// Applies what the version that is chosen for a read needs, and no more (MONKEY-3).
void Log::Choose(Node& node, const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (node.down) return;
  const std::vector<const Entry*> coming = node.Coming();
  std::vector<std::size_t> ends;  // of the log behind each write to the key
  for (std::size_t at = 0; at < coming.size(); ++at) {
    if (!coming[at]->mark && coming[at]->key == key) ends.push_back(at + 1);
  }
  if (ends.empty()) return;
  const std::size_t behind = choice_({name_, node.region, key, ends.size()});
  if (behind > ends.size()) {
    Mistake("monkey mode: " + std::to_string(behind) + " versions behind the newest, want 0 (the newest) to " +
            std::to_string(ends.size()));
  }
  if (behind < ends.size()) node.Take(ends[ends.size() - 1 - behind]);
}

std::optional<Log::StoredObject> Log::Look(Node& node, const std::string& key) {
  std::optional<StoredObject> seen;
  Looking(node, [&](const Node& at) {
    const auto found = at.data.find(key);
    seen = StoredObject{found == at.data.end() ? std::nullopt : std::optional(found->second), Ordered{at.epoch, at.counter}};
  });
  return seen;
}

// Replication

// Applies at each replica what has arrived by now; the time at which the next record arrives.
std::optional<TimePoint> Log::CatchUp() {
  if (choice_) return std::nullopt;  // each read chooses by itself
  const TimePoint now = Clock::now();
  while (true) {  // a replica may be fed by one that has just been fed itself
    bool moved = false;
    std::optional<TimePoint> nearest;
    for (const auto& node : nodes_) {
      const auto due = node->frozen || node->down ? std::nullopt : node->Fetch(now);
      if (!due) continue;
      moved = moved || *due <= now;
      nearest = nearest ? std::min(*nearest, *due) : *due;
    }
    if (!moved) return nearest;
  }
}

bool Log::Watched() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return !node->watchers.empty(); });
}

void Log::Tick() { changed_.notify_all(); }

// Applies records when they are due, while somebody watches.
void Log::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    const std::optional<TimePoint> nearest = Watched() ? CatchUp() : std::nullopt;
    if (nearest) {
      changed_.wait_until(lock, *nearest);
    } else {
      changed_.wait(lock);
    }
  }
}

bool Log::Watch(Node& node, NodeWatch& watch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (node.down) return false;
  node.watchers.push_back(&watch);
  Tick();
  return true;
}

void Log::Unwatch(Node& node, const NodeWatch& watch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  node.watchers.erase(std::remove(node.watchers.begin(), node.watchers.end(), &watch), node.watchers.end());
  Tick();
}

}  // namespace antipode::memory
