// When functions that list servers are asked, and how long their answers stand (BAR-22, BAR-53, BAR-67); tests have it sooner.
#ifndef ANTIPODE_ENGINE_DISCOVERY_H_
#define ANTIPODE_ENGINE_DISCOVERY_H_

#include <atomic>

#include "antipode/export.h"
#include "base/time.h"

namespace antipode ANTIPODE_EXPORT {
namespace discovery {

inline std::atomic<Duration> refresh{std::chrono::seconds(5)};
inline std::atomic<Duration> retry{std::chrono::milliseconds(500)};  // while no answer stands
inline std::atomic<Duration> stands{std::chrono::seconds(30)};       // so long the last one does
inline std::atomic<Duration> current{std::chrono::seconds(10)};      // so old is what came of the last question

}  // namespace discovery
}  // namespace antipode

#endif  // ANTIPODE_ENGINE_DISCOVERY_H_
