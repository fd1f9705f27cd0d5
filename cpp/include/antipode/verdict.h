/// \file
/// What can be said of a write at a server, and what a barrier says of a store (spec BAR, EPOCH).
#ifndef ANTIPODE_VERDICT_H_
#define ANTIPODE_VERDICT_H_

#include <string>
#include <string_view>
#include <utility>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// What a barrier proved for one store.
enum class Verdict {
  kVisible,    ///< Every write asked for is visible here, or superseded.
  kTimedOut,   ///< Not visible when the deadline passed.
  kUnproven,   ///< No proof is possible: the epoch has ended, the store cannot tell, no server answers.
  kElsewhere,  ///< No such store in this process: carried on, not judged.
  kNotYet,     ///< Looked at and not visible; nobody waited (dry-run, a timeout of 0).
};

/// What kept a store from being proved (BAR-59): where writes differ, the first in this order counts.
enum class UnprovenKind {
  kHistory,  ///< The write belongs to a history that the server does not know, or that ended before it: it may be lost.
  kRight,    ///< A right is missing.
  kConnection,  ///< Connecting or logging in failed.
  kNotOpened,   ///< No server is known yet.
  kMisspelt,    ///< The lineage's name of the store is a registered one's but for case, `-` and `_` (BAR-6).
  kDiscovery,   ///< What lists the servers does not list any, or fails (BAR-53).
  kUnfit,       ///< A setting or a topology in which nothing can be proved.
  kOwnFault,    ///< This process itself is in trouble: no thread, no memory.
  kOther,
};

/// How far a pass holds.
enum class Reach {
  kSession,  ///< This connection: `Reading(after)` and wait on read.
  kReplica,  ///< The server of the wrapped client.
  kRegion,   ///< Every server that readers here may use.
};

/// The word that records, spans and log lines use: `visible`, `timed_out`, `unproven`, `elsewhere`, `not_yet`.
std::string_view ToString(Verdict verdict) noexcept;

/// The word: `history`, `right`, `connection`, `not_opened`, `discovery`, `unfit`, `own_fault`, `other`.
std::string_view ToString(UnprovenKind kind) noexcept;

/// The word: `session`, `replica`, `region`.
std::string_view ToString(Reach reach) noexcept;

/// A shim's answer about one write at one server: visible, not yet, or unproven, and why.
struct Visibility {
  Verdict verdict = Verdict::kNotYet;
  std::string reason;
  /// With `kNotYet`: the server does not know the write's epoch, which may be newer than the server.
  bool unknown_epoch = false;
  /// With `kUnproven`: what kept it from being proved.
  UnprovenKind kind = UnprovenKind::kOther;
  /// With `kNotYet`: the question was put off, and nothing was said of the write.
  bool unanswered = false;

  /// The write, or what superseded it, was seen there.
  static Visibility Visible() { return {Verdict::kVisible, {}, false}; }

  /// Not visible at this server now; it may become so.
  static Visibility NotYet(std::string reason = {}) { return {Verdict::kNotYet, std::move(reason), false}; }

  /// Not visible: the server does not know the write's epoch (EPOCH-12).
  static Visibility UnknownEpoch(std::string reason) { return {Verdict::kNotYet, std::move(reason), true}; }

  /// Not visible as far as is known: nothing was said of the write now (it is not its turn, the server is loading).
  /// Dry-run finds nothing there (REC-13).
  static Visibility Unanswered(std::string reason) {
    return {Verdict::kNotYet, std::move(reason), false, UnprovenKind::kOther, true};
  }

  /// Waiting proves nothing: the reason says what is missing.
  static Visibility Unproven(std::string reason, UnprovenKind kind = UnprovenKind::kOther) {
    return {Verdict::kUnproven, std::move(reason), false, kind};
  }
};

}  // namespace antipode

#endif  // ANTIPODE_VERDICT_H_
