// OpenTelemetry as an application uses it: the W3C headers go on, whoever traces.
#ifndef ANTIPODE_EXAMPLES_SERVICES_TRACING_H_
#define ANTIPODE_EXAMPLES_SERVICES_TRACING_H_

#include <memory>
#include <string>
#include <string_view>

#include "antipode/carrier.h"

namespace services {

// Sets the process's propagators; with Antipode they take the lineage out of the application's baggage, and its scopes
// follow OpenTelemetry's context.
void StartTracing(bool antipode);

// Continues the trace and the baggage of a request or message, in this thread until the object ends.
class Continued {
 public:
  explicit Continued(const antipode::Carrier& came);
  Continued(const Continued&) = delete;
  Continued& operator=(const Continued&) = delete;
  ~Continued();

 private:
  struct Inside;
  const std::unique_ptr<Inside> inside_;
};

// Writes traceparent and baggage of this thread's context into a request or message that leaves.
void InjectContext(antipode::Carrier& leaves);

// The id of the trace that this code runs in, in hexadecimal.
std::string TraceId();

// A baggage entry of the application's own; empty where there is none.
std::string BaggageEntry(std::string_view name);

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_TRACING_H_
