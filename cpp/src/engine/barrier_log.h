/// \file
/// What barriers judged, kept while a test asks for it.
#ifndef ANTIPODE_ENGINE_BARRIER_LOG_H_
#define ANTIPODE_ENGINE_BARRIER_LOG_H_

#include <string>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// Counts, by store, the barriers that judged it, between `Begin` and `End`.
class BarrierLog {
 public:
  static bool Active() noexcept;
  static void Note(const std::string& store);
  static int Count(const std::string& store);
  static void Begin();
  static void End();
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_BARRIER_LOG_H_
