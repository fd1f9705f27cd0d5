/// \file
/// The shims of the memory store, one for each kind of version.
#ifndef ANTIPODE_MEMORY_SHIM_H_
#define ANTIPODE_MEMORY_SHIM_H_

#include <chrono>
#include <string>

#include "antipode/shim/shim.h"
#include "memory/log.h"

namespace antipode::memory {

/// What the three have in common: one question is a look at the server under its lock.
class AnyShim : public Shim {
 public:
  Answers Visible(Span<const WriteId> ids, Server& server) override;
  /// In monkey mode: brings what these writes need to be visible, where a barrier waits for them (MONKEY-5).
  Answers Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds timeout) override;
  Result<std::unique_ptr<Watch>> OpenWatch(Server& server, std::function<void()> on_change) override;
  std::string Address(const std::any& target) const override;
  bool NotesReads() const noexcept override { return true; }

 protected:
  /// What this look proves beside what was asked.
  virtual void Proved(const Node& node, Server& server) const;
  virtual Visibility Judge(const Node& node, const WriteId& write_id) const = 0;
};

/// Positions: judged by the server's place in its epoch, and by marks for ended ones (EPOCH-9 to EPOCH-12).
class PositionShim : public AnyShim {
 public:
  Capabilities capabilities() const override;

 protected:
  void Proved(const Node& node, Server& server) const override;
  Visibility Judge(const Node& node, const WriteId& write_id) const override;
};

/// Objects whose versions compare: visible is that version or a later one of the key, deletions too (SHIM-31).
class ObjectShim : public AnyShim {
 public:
  Capabilities capabilities() const override;

 protected:
  Visibility Judge(const Node& node, const WriteId& write_id) const override;
};

/// Objects whose versions are equal or not: another one in its place proves nothing (SHIM-32).
class OpaqueShim : public AnyShim {
 public:
  Capabilities capabilities() const override;

 protected:
  Visibility Judge(const Node& node, const WriteId& write_id) const override;
};

/// Any of them where no clock brings what is written, so that waiting is what does.
template <class Timed>
class Monkey : public Timed {
 public:
  Capabilities capabilities() const override { return Timed::capabilities().BlockingWait(true); }
};

}  // namespace antipode::memory

#endif  // ANTIPODE_MEMORY_SHIM_H_
