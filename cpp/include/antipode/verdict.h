/// \file
/// What can be said of a write at a server, and what a barrier says of a store (spec BAR, EPOCH).
#ifndef ANTIPODE_VERDICT_H_
#define ANTIPODE_VERDICT_H_

#include <string>
#include <string_view>
#include <utility>

namespace antipode {

/// What a barrier proved for one store.
enum class Verdict {
  kVisible,    ///< Every write asked for is visible here, or superseded.
  kTimedOut,   ///< Not visible when the deadline passed.
  kUnproven,   ///< No proof is possible: the epoch has ended, the store cannot tell, no server answers.
  kElsewhere,  ///< No such store in this process: carried on, not judged.
  kNotYet,     ///< Looked at and not visible; nobody waited (dry-run, a timeout of 0).
};

/// How far a pass holds.
enum class Reach {
  kSession,  ///< This connection: `Reading(after)` and wait on read.
  kReplica,  ///< The server of the wrapped client.
  kRegion,   ///< Every server that readers here may use.
};

/// The word that records, spans and log lines use: `visible`, `timed_out`, `unproven`, `elsewhere`, `not_yet`.
std::string_view ToString(Verdict verdict) noexcept;

/// The word: `session`, `replica`, `region`.
std::string_view ToString(Reach reach) noexcept;

/// A shim's answer about one write at one server: visible, not yet, or unproven, and why.
struct Visibility {
  Verdict verdict = Verdict::kNotYet;
  std::string reason;
  /// With `kNotYet`: the server does not know the write's epoch, which may be newer than the server.
  bool unknown_epoch = false;

  /// The write, or what superseded it, was seen there.
  static Visibility Visible() { return {Verdict::kVisible, {}, false}; }

  /// Not visible at this server now; it may become so.
  static Visibility NotYet(std::string reason = {}) { return {Verdict::kNotYet, std::move(reason), false}; }

  /// Not visible: the server does not know the write's epoch (EPOCH-12).
  static Visibility UnknownEpoch(std::string reason) { return {Verdict::kNotYet, std::move(reason), true}; }

  /// Waiting proves nothing: the reason says what is missing.
  static Visibility Unproven(std::string reason) { return {Verdict::kUnproven, std::move(reason), false}; }
};

}  // namespace antipode

#endif  // ANTIPODE_VERDICT_H_
