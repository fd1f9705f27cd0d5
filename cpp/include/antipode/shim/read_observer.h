/// \file
/// What a read returned, and who is told of it (spec SHIM-54).
#ifndef ANTIPODE_SHIM_READ_OBSERVER_H_
#define ANTIPODE_SHIM_READ_OBSERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim/write_observer.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

class Server;

/// What a read found under one key.
struct ReadValue {
  std::string key = {};                                   ///< Empty where the read names none.
  history::Content content = history::Content::kUnknown;  ///< What the key held.
  std::optional<WriteId> version = {};  ///< The write that the value itself is, where the value says so.
  std::optional<WriteId> covers = {};   ///< What covers it in the lineage of who depends on it (SHIM-13).
  Lineage lineage = {};                 ///< What rests beside it.
  /// Whether it is known what it depends on; else such a lineage is incomplete in this store.
  bool is_known = true;
};

/// The reply to a read.
struct ReadReply {
  /// What a read returned, as octets: the same where it returned the same. Nothing where it cannot be compared.
  using Octets = std::function<std::optional<std::string>()>;
  /// Longer ones are not compared.
  static constexpr std::size_t kMostOctets = std::size_t{1} << 20U;

  std::shared_ptr<Server> server;      ///< Where it came from.
  std::vector<ReadValue> values = {};  ///< What it found; empty where the shim does not have that (a cursor).
  /// What is compared with what `repeat` gives (REC-13). It is called at once, if at all.
  Octets value = nullptr;
  /// Sends the same read once more, on a connection of the shim's own, within a deadline of a second at most; called
  /// later by a thread of Antipode's. Only for commands that are deterministic and have no side effects; it returns
  /// nothing where it failed.
  Octets repeat = nullptr;
};

/// Who is told what becomes of one read. None of this fails, waits, or asks a server.
class ReadObserver {
 public:
  ReadObserver() = default;
  ReadObserver(const ReadObserver&) = delete;
  ReadObserver& operator=(const ReadObserver&) = delete;
  /// The read has ended.
  virtual ~ReadObserver() = default;

  /// Note that the reply is there; called once, or never where no reply came.
  virtual void Returned(const ReadReply& reply) noexcept = 0;
  /// Note the position that goes into the lineage of whoever depends on it (SHIM-13). It may come later than the reply.
  virtual void Covered(const WriteId& /*position*/) noexcept {}
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_READ_OBSERVER_H_
