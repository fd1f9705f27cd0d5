/// \file
/// Reads that dry-run follows: was the server behind, and was what it returned stale. For shims (spec REC-6, REC-12 to
/// REC-15).
#ifndef ANTIPODE_SHIM_FOLLOWED_READ_H_
#define ANTIPODE_SHIM_FOLLOWED_READ_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/export.h"
#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/shim/server.h"
#include "antipode/site.h"
#include "antipode/store.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// One read of a store in dry-run that is followed. None of this waits, asks a server, or fails.
///
///     const auto followed = FollowedRead::Begin(store, CurrentReading(), CurrentScope(), site);
///     auto value = …;                       // the read itself
///     if (followed) followed->Over(server, {[&] { return OctetsOf(value); }, [=] { return … read again …; }, {}});
class FollowedRead {
 public:
  /// What a read returned, as octets: the same where it returned the same. Nothing where it cannot be compared. A
  /// result longer than `kMostOctets` is not.
  using Octets = std::function<std::optional<std::string>()>;
  static constexpr std::size_t kMostOctets = std::size_t{1} << 20U;

  /// What came of a read.
  struct Came {
    /// Called at once, if at all. None where the shim does not have what came (a cursor, a stream of rows): then nothing
    /// is compared.
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

  FollowedRead(const FollowedRead&) = delete;
  FollowedRead& operator=(const FollowedRead&) = delete;
  ~FollowedRead();

  /// The reply has come from this server; called once.
  void Over(const std::shared_ptr<Server>& server, const Came& came) noexcept;
  void Over(const std::shared_ptr<Server>& server) noexcept;

 private:
  struct Inside;
  explicit FollowedRead(std::shared_ptr<Inside> inside);

  const std::shared_ptr<Inside> inside_;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_FOLLOWED_READ_H_
