/// \file
/// The memory store itself: servers that replicate a log from a primary, and the faults that can be made to happen.
#ifndef ANTIPODE_MEMORY_LOG_H_
#define ANTIPODE_MEMORY_LOG_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/memory.h"
#include "antipode/shim/hybrid_clock.h"
#include "memory/node.h"

namespace antipode::memory {

/// How the shim reaches a server.
struct Target {
  std::shared_ptr<Log> log;
  Node* node;
};

class Log {
 public:
  explicit Log(const MemoryOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const std::string& name() const noexcept { return name_; }
  Versions versions() const noexcept { return versions_; }
  /// The server of a region; a region that there is not ends the process.
  Node& NodeOf(std::string_view region);
  Node& primary() noexcept { return *primary_; }

  void SetLag(std::string_view region, Duration lag);
  void Freeze(std::string_view region);
  void Heal(std::string_view region);
  void Promote(std::string_view region, std::size_t lose);
  void Repoint(std::string_view region, std::string_view source);
  void Restart(std::string_view region);
  void Stop(std::string_view region);
  void LoseNextAnswer();
  void Settle(std::string_view epoch, std::uint64_t counter);
  std::string Instance(std::string_view region);

  /// What came of a write at a server, which has to be the primary.
  struct WriteOutcome {
    MemoryOutcome outcome = MemoryOutcome::kDone;
    std::string message;
    /// The deletion of an object that is not there has the version of its tombstone; nothing where it has none. In a
    /// store of positions it is a write like others.
    std::optional<Version> version;
  };
  WriteOutcome Write(Node& node, const std::string& key, std::optional<std::string> value, std::string lineage);

  /// An object at a server with its lineage and version, and where the server is; nothing where it is down.
  struct StoredObject {
    std::optional<Cell> cell;
    Ordered position;
  };
  std::optional<StoredObject> Look(Node& node, const std::string& key);
  /// The same for a read, which in monkey mode chooses first what it finds there.
  std::optional<StoredObject> Read(Node& node, const std::string& key);

  /// In monkey mode: applies at a server what can reach it until this says that it is enough; nothing where it is down.
  template <class Enough>
  void Bring(Node& node, const Enough& enough) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!node.down && !enough(static_cast<const Node&>(node)) && !node.Coming().empty()) node.Take(1);
  }

  /// Calls this with the server standing still, as it is now; false where it is down.
  template <class Look>
  bool Looking(Node& node, const Look& look) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (node.down) return false;
    CatchUp();
    look(static_cast<const Node&>(node));
    return true;
  }

  /// Has the watcher called whenever something was applied at the server; false where it is down.
  bool Watch(Node& node, NodeWatch& watch);
  void Unwatch(Node& node, const NodeWatch& watch);

 private:
  void Choose(Node& node, const std::string& key);
  void BeginEpoch();
  void Mark();
  Version Append(const std::string& key, std::optional<std::string> value, std::string lineage,
                 std::optional<std::pair<std::string, std::uint64_t>> mark = std::nullopt);
  std::optional<TimePoint> CatchUp();
  bool Watched() const;
  void Tick();
  void Run();

  const std::string name_;
  const Versions versions_;
  const StaleChoice choice_;  // null: a clock brings what is written
  std::mutex mutex_;
  std::condition_variable changed_;
  HybridClock clock_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Node* primary_ = nullptr;
  std::string epoch_;
  std::uint64_t counter_ = 0;
  TimePoint marked_at_ = kNever;
  bool answers_lost_ = false;
  bool ending_ = false;
  std::thread ticker_;
};

}  // namespace antipode::memory

#endif  // ANTIPODE_MEMORY_LOG_H_
