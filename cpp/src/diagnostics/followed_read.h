/// \file
/// Reads that dry-run follows: was the server behind, and was what it returned stale (spec REC-6, REC-12 to REC-15).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_FOLLOWED_READ_H_
#define ANTIPODE_SRC_DIAGNOSTICS_FOLLOWED_READ_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/shim/read_observer.h"
#include "antipode/shim/server.h"
#include "antipode/site.h"
#include "antipode/store.h"
#include "antipode/write_id.h"

namespace antipode {

/// One read of a store in dry-run that is followed. None of this waits, asks a server, or fails.
///
///     const auto followed = FollowedRead::Begin(store, CurrentReading(), CurrentScope(), site);
///     auto value = …;                       // the read itself
///     if (followed) followed->Over(server, {[&] { return OctetsOf(value); }, [=] { return … read again …; }, {}});
class FollowedRead final : public ReadObserver {
 public:
  using Octets = ReadReply::Octets;
  static constexpr std::size_t kMostOctets = ReadReply::kMostOctets;

  /// What came of a read.
  struct Came {
    /// Called at once, if at all. None where the shim does not have what came (a cursor, a stream of rows): then
    /// nothing is compared.
    Octets value = nullptr;
    /// Sends the same read once more, on a connection of the shim's own, within a deadline of a second at most; called
    /// later by a thread of Antipode's. Only for commands that are deterministic and have no side effects; nothing
    /// where it failed.
    Octets repeat = nullptr;
    /// The exact versions of the values that came, by the keys of their write identifiers (EPOCH-4).
    std::map<std::string, Version> versions = {};
  };

  /// Called before a read is sent. Null where nothing follows it, as always outside dry-run.
  ///
  /// `keys`: in a store of objects those that are read, as write identifiers name them; nothing where nobody knows
  /// them.
  static std::unique_ptr<FollowedRead> Begin(
      const std::shared_ptr<Store>& store, const std::shared_ptr<ReadingBlock>& reading, const ScopePtr& scope,
      const Site& site, const std::optional<std::vector<std::string>>& keys = std::nullopt) noexcept;

  /// Has the reads that the lower rooms tell of be followed; called once.
  static void Listen() noexcept;

  FollowedRead(const FollowedRead&) = delete;
  FollowedRead& operator=(const FollowedRead&) = delete;
  ~FollowedRead() override;

  void Returned(const ReadReply& reply) noexcept override;

  /// The reply has come from this server; called once.
  void Over(const std::shared_ptr<Server>& server, const Came& came) noexcept;
  void Over(const std::shared_ptr<Server>& server) noexcept;

 private:
  struct Inside;
  explicit FollowedRead(std::shared_ptr<Inside> inside);

  const std::shared_ptr<Inside> inside_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_FOLLOWED_READ_H_
