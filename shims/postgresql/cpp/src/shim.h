// The PostgreSQL shim: judges positions at a server, which it asks every millisecond while somebody waits.
#ifndef ANTIPODE_POSTGRESQL_SRC_SHIM_H_
#define ANTIPODE_POSTGRESQL_SRC_SHIM_H_

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "antipode/shim/server.h"
#include "antipode/shim/shim.h"
#include "antipode/store.h"
#include "looking.h"
#include "probe.h"

namespace antipode::postgresql {

class PostgresqlShim final : public Shim {
 public:
  Capabilities capabilities() const override;
  Answers Visible(Span<const WriteId> ids, Server& server) override;
  // One poller a server: a short statement a millisecond, each with a snapshot of its own. A loop in one statement
  // would hold its snapshot, and a standby does not replay what conflicts with one.
  Answers Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds timeout) override;
  void Close(Server& server) noexcept override;
  bool Renews() const noexcept override { return true; }
  std::any Renew(const Server& server) override;
  std::string Address(const std::any& target) const override;
  bool NotesReads() const noexcept override { return true; }

  // The operator's word, which one wrap or registration has given.
  void BelieveTimelinesUnique() { unique_timelines_.store(true); }

  // The operator's word that a server that crashed is rebuilt before it serves readers (SHIM-45).
  void BelieveServersRebuilt() { relaxed_durability_.store(true); }
  bool relaxed_durability() const { return relaxed_durability_.load(); }

  // What was found out of a server when a client of this user was wrapped, and when; asked again ten seconds later.
  struct KnownServer {
    Facts facts;
    std::chrono::steady_clock::time_point at;
  };
  std::optional<KnownServer> FactsOf(const std::string& place) const;
  void KeepFacts(const std::string& place, const Facts& facts);

  // When the server of this address started, as its poller last saw it; empty where it never did.
  std::string LifeOf(const std::string& address) const;

 private:
  Look& LookAt(Server& server);

  std::atomic<bool> unique_timelines_{false};
  std::atomic<bool> relaxed_durability_{false};
  mutable std::mutex mutex_;
  std::map<std::string, KnownServer> facts_;
  std::map<std::string, std::string> lives_;
};

// PostgreSQL's kind of store.
ShimType PostgresqlType();

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_SHIM_H_
