/// \file
/// Where a connection of a wrapped client leads: for shims (spec BAR-52, BAR-62).
#ifndef ANTIPODE_SHIM_LEAD_H_
#define ANTIPODE_SHIM_LEAD_H_

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "antipode/export.h"
#include "antipode/shim/server.h"

namespace antipode ANTIPODE_EXPORT {

/// A connection leads to a server, from when its store was told until this ends. The connection keeps it, and tells the
/// store where it is made anew (`Store::Reach`).
class Lead {
 public:
  /// `descriptor`: the connection's socket; nothing where the wrap of the connection names the server, whatever becomes
  /// of it.
  Lead(std::shared_ptr<Server> server, std::optional<int> descriptor)
      : server_(std::move(server)), descriptor_(descriptor) {}

  const std::shared_ptr<Server>& server() const noexcept { return server_; }

  /// Whether the store counts it for a connection with this socket: not where it was seen to be lost.
  bool Counts(int descriptor) const noexcept { return !is_over() && descriptor_.value_or(descriptor) == descriptor; }

  // What the store calls

  bool is_over() const noexcept { return is_over_.load(); }
  void End() noexcept { is_over_.store(true); }
  /// Whether the socket is open, and its peer has not closed it. Reads nothing, and never waits; what cannot be told is
  /// open.
  bool IsOpen() const noexcept;

 private:
  const std::shared_ptr<Server> server_;
  const std::optional<int> descriptor_;
  std::atomic<bool> is_over_{false};
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_LEAD_H_
