// The application's services (benchmarks/services.md); post-storage runs in both regions. And the worker of random
// workloads.
#ifndef ANTIPODE_EXAMPLES_SERVICES_SERVICES_H_
#define ANTIPODE_EXAMPLES_SERVICES_SERVICES_H_

#include <time.h>

#include <cstdint>
#include <string>

#include "http.h"
#include "setup.h"

namespace services {

inline constexpr const char* kReplicaHeader = "x-replica";
inline constexpr const char* kReadAtHeader = "x-read-at-ns";

// What a service is built from; all of it lives as long as the process.
struct Site {
  Door& door;
  Calls& calls;
  const CurrentSetup& setup;
};

// Each puts its routes at the door, and starts what else the service does.
void BuildPostUpload(const Site& site);
void BuildPostStorageA(const Site& site);
void BuildPostStorageB(const Site& site);
void BuildNotifier(const Site& site);
void BuildFollowerNotify(const Site& site);
void BuildWorker(const Site& site);

// The time that all processes of this machine share, in ns.
inline std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_SERVICES_H_
