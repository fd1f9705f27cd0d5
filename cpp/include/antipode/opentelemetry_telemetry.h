/// \file
/// Antipode's metrics and spans by OpenTelemetry, where its API headers are there (spec OBS-1 to OBS-4). Nothing of it
/// is compiled into the library: include this where it is used, and call `antipode::otel::ExportTelemetry()` once,
/// after the application has set its providers. Without an SDK it does nothing but count.
#ifndef ANTIPODE_OPENTELEMETRY_TELEMETRY_H_
#define ANTIPODE_OPENTELEMETRY_TELEMETRY_H_

#include <opentelemetry/context/context.h>
#include <opentelemetry/metrics/async_instruments.h>
#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>
#include <opentelemetry/trace/tracer.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "antipode/telemetry.h"

namespace antipode::otel {

namespace detail {

namespace metrics_api = opentelemetry::metrics;
namespace trace_api = opentelemetry::trace;
namespace nostd = opentelemetry::nostd;

inline constexpr const char* kInstrumentation = "antipode";

inline nostd::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

/// Everything that Antipode counts and measures, by the instruments of the providers in force.
class Exporter : public TelemetrySink {
 public:
  Exporter() : meter_(metrics_api::Provider::GetMeterProvider()->GetMeter(kInstrumentation)) {
    for (const antipode::Instrument& instrument : Instruments()) Make(instrument);
  }
  ~Exporter() override {
    for (auto& [name, observed] : observed_) observed.instrument->RemoveCallback(Observe, &observed);
  }

  void Add(const antipode::Instrument& instrument, const Attributes& attributes, std::uint64_t number) override {
    const auto found = counters_.find(instrument.name);
    if (found != counters_.end()) found->second->Add(number, attributes, opentelemetry::context::Context{});
  }

  void Record(const antipode::Instrument& instrument, const Attributes& attributes, double value) override {
    const auto found = histograms_.find(instrument.name);
    if (found != histograms_.end()) found->second->Record(value, attributes, opentelemetry::context::Context{});
  }

  void Waited(const BarrierSpan& barrier) override {
    const auto tracer = trace_api::Provider::GetTracerProvider()->GetTracer(kInstrumentation);
    const auto ends = std::chrono::steady_clock::now();
    const auto started = std::chrono::system_clock::now() - barrier.duration;
    trace_api::StartSpanOptions from;
    from.start_system_time = opentelemetry::common::SystemTimestamp(started);
    from.start_steady_time = opentelemetry::common::SteadyTimestamp(ends - barrier.duration);
    const auto span = tracer->StartSpan("antipode.barrier", from);
    Describe(*span, barrier);
    span->SetAttribute("antipode.satisfied", barrier.satisfied);
    span->SetAttribute("antipode.complete", barrier.complete);
    span->SetAttribute("antipode.site", Text(barrier.site));
    span->SetAttribute("antipode.dry_run", barrier.dry_run);
    span->SetAttribute("antipode.policy", Text(barrier.policy));
    from.parent = span->GetContext();
    for (const WaitSpan& wait : barrier.waits) {
      const auto child = tracer->StartSpan("antipode.wait", from);
      Describe(*child, barrier);
      child->SetAttribute("antipode.store", Text(wait.store));
      child->SetAttribute("antipode.store.kind", Text(wait.kind));
      child->SetAttribute("antipode.verdict", Text(ToString(wait.verdict)));
      if (wait.verdict != Verdict::kVisible) Fail(*child, ToString(wait.verdict));
      End(*child, ends - barrier.duration + wait.duration);
    }
    if (barrier.outcome != "satisfied") Fail(*span, barrier.outcome);
    End(*span, ends);
  }

  std::optional<SpanName> CurrentSpan() override {
    const trace_api::SpanContext context = trace_api::Tracer::GetCurrentSpan()->GetContext();
    if (!context.IsValid()) return std::nullopt;
    SpanName name{std::string(32, '0'), std::string(16, '0')};
    context.trace_id().ToLowerBase16(nostd::span<char, 32>(&name.trace_id[0], 32));
    context.span_id().ToLowerBase16(nostd::span<char, 16>(&name.span_id[0], 16));
    return name;
  }

  void Finding(const EventAttributes& about) override {
    const auto span = trace_api::Tracer::GetCurrentSpan();
    if (!span->IsRecording()) return;
    std::map<std::string, opentelemetry::common::AttributeValue> attributes;
    std::map<std::string, std::vector<nostd::string_view>> lists;
    for (const auto& [name, value] : about) {
      if (const auto* text = std::get_if<std::string>(&value)) {
        attributes[name] = Text(*text);
      } else if (const auto* number = std::get_if<double>(&value)) {
        attributes[name] = *number;
      } else {
        std::vector<nostd::string_view>& list = lists[name];
        for (const std::string& each : std::get<std::vector<std::string>>(value)) list.push_back(Text(each));
        attributes[name] = nostd::span<const nostd::string_view>(list.data(), list.size());
      }
    }
    span->AddEvent("antipode.finding", attributes);
  }

 private:
  struct ObservedInstrument {
    std::string name;
    nostd::shared_ptr<metrics_api::ObservableInstrument> instrument;
  };

  void Make(const antipode::Instrument& instrument) {
    const nostd::string_view name = Text(instrument.name);
    const nostd::string_view about = Text(instrument.about);
    const nostd::string_view unit = Text(instrument.unit);
    switch (instrument.kind) {
      case InstrumentKind::kCounter:
        counters_.emplace(instrument.name, meter_->CreateUInt64Counter(name, about, unit));
        return;
      case InstrumentKind::kHistogram:
        histograms_.emplace(instrument.name, meter_->CreateDoubleHistogram(name, about, unit));
        return;
      case InstrumentKind::kObservableCounter:
        Watch(instrument, meter_->CreateInt64ObservableCounter(name, about, unit));
        return;
      case InstrumentKind::kObservableUpDownCounter:
        Watch(instrument, meter_->CreateInt64ObservableUpDownCounter(name, about, unit));
        return;
      case InstrumentKind::kObservableGauge:
        Watch(instrument, meter_->CreateInt64ObservableGauge(name, about, unit));
        return;
    }
  }

  void Watch(const antipode::Instrument& instrument, nostd::shared_ptr<metrics_api::ObservableInstrument> made) {
    ObservedInstrument& observed = observed_[instrument.name];
    observed.name = instrument.name;
    observed.instrument = std::move(made);
    observed.instrument->AddCallback(Observe, &observed);
  }

  static void Observe(metrics_api::ObserverResult result, void* state) {
    const std::string& name = static_cast<const ObservedInstrument*>(state)->name;
    using Observer = nostd::shared_ptr<metrics_api::ObserverResultT<std::int64_t>>;
    if (!nostd::holds_alternative<Observer>(result)) return;
    for (const Measurement& measured : Measurements()) {
      if (measured.name == name) nostd::get<Observer>(result)->Observe(measured.count, measured.attributes);
    }
  }

  static void Describe(trace_api::Span& span, const BarrierSpan& barrier) {
    span.SetAttribute("antipode.reach", Text(ToString(barrier.reach)));
    span.SetAttribute("antipode.region", Text(barrier.region));
  }

  static void Fail(trace_api::Span& span, std::string_view kind) {
    span.SetAttribute("error.type", Text(kind));
    span.SetStatus(trace_api::StatusCode::kError);
  }

  static void End(trace_api::Span& span, std::chrono::steady_clock::time_point at) {
    trace_api::EndSpanOptions options;
    options.end_steady_time = opentelemetry::common::SteadyTimestamp(at);
    span.End(options);
  }

  const nostd::shared_ptr<metrics_api::Meter> meter_;
  std::map<std::string_view, nostd::unique_ptr<metrics_api::Counter<std::uint64_t>>> counters_;
  std::map<std::string_view, nostd::unique_ptr<metrics_api::Histogram<double>>> histograms_;
  std::map<std::string_view, ObservedInstrument> observed_;
};

}  // namespace detail

/// Sends what Antipode counts, measures and traces to OpenTelemetry's providers as they are now; again where they
/// change.
inline void ExportTelemetry() { SetTelemetrySink(std::make_shared<detail::Exporter>()); }

}  // namespace antipode::otel

#endif  // ANTIPODE_OPENTELEMETRY_TELEMETRY_H_
