/// \file
/// A live push channel to one server of the memory store.
#ifndef ANTIPODE_MEMORY_WATCH_H_
#define ANTIPODE_MEMORY_WATCH_H_

#include <functional>
#include <memory>
#include <utility>

#include "antipode/shim/server.h"
#include "antipode/shim/shim.h"

namespace antipode::memory {

class Log;
struct Node;

/// The store's own thread calls it back, under the log's lock.
class NodeWatch : public Watch {
 public:
  NodeWatch(Log& log, Node& node, Server& server, std::function<void()> on_change)
      : log_(log), node_(node), server_(server), on_change_(std::move(on_change)) {}
  ~NodeWatch() override;

  /// Something was applied there.
  void Changed() const { on_change_(); }

  /// The server has started again, perhaps with less than it had: what it proved before holds no more.
  void Replaced() const {
    server_.Reset();
    on_change_();
  }

 private:
  Log& log_;
  Node& node_;
  Server& server_;
  const std::function<void()> on_change_;
};

}  // namespace antipode::memory

#endif  // ANTIPODE_MEMORY_WATCH_H_
