// The Redis shim: judges positions at a server, and hears of changes by client-side tracking (spec SHIM, EPOCH).
#ifndef ANTIPODE_REDIS_SHIM_H_
#define ANTIPODE_REDIS_SHIM_H_

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "antipode/shim/shim.h"
#include "marker.h"
#include "marks.h"
#include "session.h"

namespace antipode::redis {

class RedisShim : public Shim {
 public:
  ~RedisShim() override;

  Capabilities capabilities() const override;
  Answers Visible(Span<const WriteId> ids, Server& server) override;
  Result<std::unique_ptr<Watch>> OpenWatch(Server& server, std::function<void()> on_change) override;
  void Close(Server& server) noexcept override;
  bool Renews() const noexcept override { return true; }
  std::any Renew(const Server& server) override;
  std::string Address(const std::any& target) const override;
  bool NotesReads() const noexcept override { return true; }

  // The key of the hash of marks: one a store; kConfiguration where another wrap said another one.
  Result<void> UseMarksKey(const std::string& key);
  std::string marks_key() const;

  // The marker of this store at this server: one a process.
  std::shared_ptr<Marker> MarkerAt(const std::string& store, const Target& target);

 private:
  SessionReply<std::shared_ptr<Session>> SessionOf(Server& server);

  mutable std::mutex mutex_;
  std::string marks_key_;
  std::map<std::string, std::shared_ptr<Marker>> markers_;
};

// `redis`, as the registry knows it.
ShimType RedisType();

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_SHIM_H_
