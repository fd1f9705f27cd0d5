/// \file
/// What Antipode counts and measures: plain numbers to read, and a sink for a library that exports them (spec OBS).
///
/// Where OpenTelemetry's API is there, `antipode::otel` installs such a sink. Without, everything works all the same
/// (OBS-10).
#ifndef ANTIPODE_TELEMETRY_H_
#define ANTIPODE_TELEMETRY_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "antipode/export.h"
#include "antipode/verdict.h"

namespace antipode ANTIPODE_EXPORT {

/// How an instrument's numbers come about (OBS-2).
enum class InstrumentKind { kCounter, kHistogram, kObservableCounter, kObservableUpDownCounter, kObservableGauge };

/// An instrument of the specification's table.
struct Instrument {
  std::string_view name;
  InstrumentKind kind;
  std::string_view unit;
  std::string_view about;
};

/// Every instrument, in order of name.
const std::vector<Instrument>& Instruments();

/// Names and values; every name begins with `antipode.` (OBS-4).
using Attributes = std::map<std::string, std::string>;

/// One instrument with one set of attributes, since the process began.
struct Measurement {
  std::string name;
  Attributes attributes;
  std::int64_t count = 0;  ///< Of a counter or gauge its value; of a histogram how often.
  double sum = 0.0;        ///< Of a histogram, in the instrument's unit.
};

/// Everything so far, the observed instruments included, in order of name and attributes.
std::vector<Measurement> Measurements();

/// A barrier's wait for one store, as a span has it (OBS-1).
struct WaitSpan {
  std::string store;
  std::string kind;
  Verdict verdict = Verdict::kVisible;
  std::chrono::nanoseconds duration{};
};

/// A barrier that had to wait, as a span has it: it ends now.
struct BarrierSpan {
  std::chrono::nanoseconds duration{};
  std::string outcome;  ///< `satisfied`; anything else is its `error.type`.
  std::string site;
  std::string policy;
  std::string region;
  Reach reach = Reach::kRegion;
  bool satisfied = false;
  bool complete = false;
  bool dry_run = false;
  std::vector<WaitSpan> waits;
};

/// A span's identity, in hexadecimal.
struct SpanName {
  std::string trace_id;
  std::string span_id;
};

/// Names and values of a span's event: texts, numbers and lists of texts; every name begins with `antipode.` (OBS-4).
using EventAttributes = std::map<std::string, std::variant<std::string, double, std::vector<std::string>>>;

/// What exports the numbers and makes the spans. Called by any thread, never on the barrier's free path (OBS-9); it
/// must not throw.
class TelemetrySink {
 public:
  TelemetrySink() = default;
  TelemetrySink(const TelemetrySink&) = delete;
  TelemetrySink& operator=(const TelemetrySink&) = delete;
  virtual ~TelemetrySink() = default;

  /// The first barrier or request of the process: observable instruments are to be made now.
  virtual void Start() {}
  /// A counter grows.
  virtual void Add(const Instrument& instrument, const Attributes& attributes, std::uint64_t number) = 0;
  /// A histogram gets a value.
  virtual void Record(const Instrument& instrument, const Attributes& attributes, double value) = 0;
  /// A barrier waited.
  virtual void Waited(const BarrierSpan& barrier) = 0;
  /// The name of the current span; nothing where there is none.
  virtual std::optional<SpanName> CurrentSpan() = 0;
  /// The current span, if there is one that has not ended, gets an event `antipode.finding` (REC-9, OBS-11).
  virtual void Finding(const EventAttributes& about) = 0;
};

/// Has this sink get everything from now on; null takes it away.
void SetTelemetrySink(std::shared_ptr<TelemetrySink> sink);

}  // namespace antipode

#endif  // ANTIPODE_TELEMETRY_H_
