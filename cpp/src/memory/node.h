/// \file
/// One server of the memory store: its log, its data, the marks in it.
#ifndef ANTIPODE_MEMORY_NODE_H_
#define ANTIPODE_MEMORY_NODE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim/epochs.h"
#include "antipode/shim/shim.h"
#include "antipode/write_id.h"
#include "base/time.h"

namespace antipode::memory {

class NodeWatch;

/// An object at a server: its value (nothing: deleted, and this is its tombstone), its lineage and version.
struct Cell {
  std::optional<std::string> value;
  std::string lineage;
  Version version;
};

/// One record of the log: a write (without a value it deletes), or a mark of what lies before it.
struct Entry {
  TimePoint due;
  std::string epoch;
  std::uint64_t counter = 0;
  std::string key;
  std::optional<std::string> value;
  std::string lineage;
  /// What the write is called: its own place in the log, or its object's version.
  Version version;
  std::optional<std::pair<std::string, std::uint64_t>> mark;
};

/// One server. The log's lock guards it.
struct Node {
  Node(std::string name, Duration late, Versions kind) : region(std::move(name)), versions(kind), lag(late) { Boot(); }

  /// The server's process starts: another instance, with what its log holds.
  void Boot();
  /// A record joins the log.
  void Append(Entry entry);
  /// Applies what has arrived from its source by now: `now` where that was anything, else when the next arrives;
  /// nothing where nothing is on its way.
  std::optional<TimePoint> Fetch(TimePoint now);
  /// The records that can reach it and that it has not applied, its source's own to come among them.
  std::vector<const Entry*> Coming() const;
  /// Applies the next so many of what is coming, and at its source what that has not got itself.
  void Take(std::size_t count);
  /// It fetches its log from this server from now on; what that has not got is cut off.
  void Follow(Node& from);
  /// What the server has of an object, also by the hashed form of its key.
  const Cell* Find(const std::string& key) const;

  const std::string region;
  const Versions versions;
  Duration lag;
  bool frozen = false;
  bool down = false;
  Node* source = nullptr;
  std::vector<Entry> log;
  std::size_t applied_from_source = 0;
  std::vector<NodeWatch*> watchers;

  std::string instance;
  std::map<std::string, Cell> data;
  std::map<std::string, std::string> hashed;
  Ends marks;
  Ends ends;
  std::string epoch;
  std::uint64_t counter = 0;

 private:
  void Apply(const Entry& entry);
};

/// Sixteen hexadecimal digits drawn by chance: the name of an instance, an epoch or an opaque version.
std::string RandomName();

}  // namespace antipode::memory

#endif  // ANTIPODE_MEMORY_NODE_H_
