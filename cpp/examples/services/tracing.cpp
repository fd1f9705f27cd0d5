#include "tracing.h"

#include <antipode/opentelemetry.h>
#include <antipode/opentelemetry_telemetry.h>
#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/baggage/propagation/baggage_propagator.h>
#include <opentelemetry/context/propagation/composite_propagator.h>
#include <opentelemetry/context/propagation/global_propagator.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>

#include <map>
#include <utility>
#include <vector>

namespace services {
namespace {

namespace otel = opentelemetry;
namespace propagation = opentelemetry::context::propagation;

using Propagator = otel::nostd::shared_ptr<propagation::TextMapPropagator>;

// The application's own propagators. What leaves is written by these: the lineage beside it by Antipode's carriers and
// shims, which know where it goes.
const Propagator& W3c() {
  static const Propagator propagator = [] {
    std::vector<std::unique_ptr<propagation::TextMapPropagator>> both;
    both.push_back(std::make_unique<otel::trace::propagation::HttpTraceContext>());
    both.push_back(std::make_unique<otel::baggage::propagation::BaggagePropagator>());
    return Propagator(new propagation::CompositePropagator(std::move(both)));
  }();
  return propagator;
}

std::string_view View(otel::nostd::string_view text) { return {text.data(), text.size()}; }

// Shows OpenTelemetry the headers that the two propagators ask for.
class TextMap : public propagation::TextMapCarrier {
 public:
  explicit TextMap(const antipode::Carrier& came) {
    came.ForEach([this](std::string_view name, std::string_view value) {
      for (const char* known : {"traceparent", "tracestate", "baggage"}) {
        if (antipode::IsSameHeader(name, known)) found_.emplace(known, value);
      }
    });
  }
  explicit TextMap(antipode::Carrier& leaves) : leaves_(&leaves) {}

  otel::nostd::string_view Get(otel::nostd::string_view name) const noexcept override {
    const auto at = found_.find(View(name));
    return at == found_.end() ? otel::nostd::string_view() : otel::nostd::string_view(at->second);
  }
  void Set(otel::nostd::string_view name, otel::nostd::string_view value) noexcept override {
    if (leaves_ != nullptr) leaves_->Set(View(name), View(value));
  }

 private:
  std::map<std::string, std::string, std::less<>> found_;
  antipode::Carrier* leaves_ = nullptr;
};

}  // namespace

void StartTracing(bool antipode) {
  propagation::GlobalTextMapPropagator::SetGlobalPropagator(W3c());
  if (!antipode) return;
  antipode::otel::Instrument();
  antipode::otel::ExportTelemetry();  // dry-run's records have the trace by it
}

struct Continued::Inside {
  otel::nostd::unique_ptr<otel::context::Token> token;
};

Continued::Continued(const antipode::Carrier& came) : inside_(std::make_unique<Inside>()) {
  otel::context::Context present = otel::context::RuntimeContext::GetCurrent();
  const TextMap carrier(came);
  const auto global = propagation::GlobalTextMapPropagator::GetGlobalPropagator();
  inside_->token = otel::context::RuntimeContext::Attach(global->Extract(carrier, present));
}

Continued::~Continued() = default;

void InjectContext(antipode::Carrier& leaves) {
  TextMap carrier(leaves);
  W3c()->Inject(carrier, otel::context::RuntimeContext::GetCurrent());
}

std::string TraceId() {
  const auto span = otel::trace::GetSpan(otel::context::RuntimeContext::GetCurrent());
  char digits[2 * otel::trace::TraceId::kSize];
  span->GetContext().trace_id().ToLowerBase16(digits);
  return std::string(digits, sizeof(digits));
}

std::string BaggageEntry(std::string_view name) {
  std::string value;
  const auto baggage = otel::baggage::GetBaggage(otel::context::RuntimeContext::GetCurrent());
  baggage->GetValue(otel::nostd::string_view(name.data(), name.size()), value);
  return value;
}

}  // namespace services
