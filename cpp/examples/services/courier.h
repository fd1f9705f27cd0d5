// Couriers of benchmarks/deliveries.md.
#ifndef ANTIPODE_EXAMPLES_SERVICES_COURIER_H_
#define ANTIPODE_EXAMPLES_SERVICES_COURIER_H_

#include <string>
#include <vector>

namespace services {

// Runs a courier until it is killed, or has sent all: its role, the broker's URL, a queue, and the rest of the role.
void RunCourier(const std::vector<std::string>& words);

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_COURIER_H_
