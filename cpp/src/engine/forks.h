/// \file
/// Forks: pollers, channels, watermarks and who waits stay with the parent; a child begins without any (spec SCOPE-13).
#ifndef ANTIPODE_ENGINE_FORKS_H_
#define ANTIPODE_ENGINE_FORKS_H_

namespace antipode::forks {

/// Has the registry, its stores and their servers held round every fork; only the first call does anything.
void Install();

}  // namespace antipode::forks

#endif  // ANTIPODE_ENGINE_FORKS_H_
