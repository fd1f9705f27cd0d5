// Octets of headers at a service's door, those of lineages apart.
#ifndef ANTIPODE_EXAMPLES_SERVICES_TRAFFIC_H_
#define ANTIPODE_EXAMPLES_SERVICES_TRAFFIC_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "antipode/carrier.h"

namespace services {

struct Octets {
  std::int64_t all = 0;
  std::int64_t lineage = 0;
};

// Header lines as HTTP/1.1 spells them.
Octets Measure(const antipode::Carrier& headers);

class Traffic {
 public:
  void CountRequest(const Octets& headers);
  void CountResponse(const Octets& headers);
  std::string ToJson() const;

 private:
  std::atomic<std::int64_t> requests_{0};
  std::atomic<std::int64_t> request_headers_{0};
  std::atomic<std::int64_t> request_lineage_{0};
  std::atomic<std::int64_t> response_headers_{0};
  std::atomic<std::int64_t> response_lineage_{0};
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_TRAFFIC_H_
