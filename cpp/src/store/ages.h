/// \file
/// How long a store's positions have been seen (spec BAR-57).
#ifndef ANTIPODE_SRC_STORE_AGES_H_
#define ANTIPODE_SRC_STORE_AGES_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/time.h"

namespace antipode {

/// When a store's positions were first seen at any of its servers: what a server's lag is told from. Any thread.
class Ages {
 public:
  /// A server was seen to have applied so much of the epoch that it is in.
  void Note(const std::string& epoch, std::uint64_t counter, TimePoint now);
  /// For how long a server that is at this position has been behind another; zero where it is not.
  Duration Lag(const std::string& epoch, std::uint64_t counter, TimePoint now) const;

 private:
  mutable std::mutex mutex_;
  std::string epoch_;
  std::deque<std::pair<std::uint64_t, TimePoint>> seen_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_AGES_H_
