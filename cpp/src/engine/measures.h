/// \file
/// What the engine counts and measures (spec OBS). Nothing here but `CountBarrier` is called on the barrier's free
/// path.
#ifndef ANTIPODE_ENGINE_MEASURES_H_
#define ANTIPODE_ENGINE_MEASURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/settings.h"
#include "antipode/telemetry.h"
#include "telemetry.h"

namespace antipode::telemetry {

/// What a barrier came to (OBS-2).
enum class Outcome { kFree, kSatisfied, kTimedOut, kUnproven, kVacuous, kIncomplete, kOverloaded };

std::string_view ToString(Outcome outcome) noexcept;

/// One more barrier of this outcome: a plain number, that an observable counter reads.
void CountBarrier(Outcome outcome) noexcept;

/// How many barriers of this outcome there were.
std::uint64_t Barriers(Outcome outcome) noexcept;

/// What a barrier's wait for one store came to.
struct Wait {
  std::string store;
  std::string kind;
  Verdict verdict = Verdict::kVisible;
  Duration duration{};
  /// How long after the call the last of its servers had everything; nothing where one never had.
  std::optional<Duration> lag;
};

/// A barrier that had to wait: its histograms, and its spans where somebody collects them (OBS-1).
void BarrierWaited(const BarrierSpan& barrier, const std::vector<Wait>& waits);

/// A server was asked because somebody waits: `wait`, `probe` or `mark`.
void Request(const std::string& store, std::string_view purpose);

/// A fallback read was `run` or `refused`.
void Fallback(std::string_view outcome);

/// A shim says that it may not mark this store's epochs, and why; with an empty reason: it may (EPOCH-26).
void NoteMarks(const std::string& store, const std::string& missing);

/// The name of the current span; nothing where there is none, or nobody collects them.
std::optional<SpanName> CurrentSpan();

/// The current span, if there is one, gets an event of this finding (REC-9, OBS-11).
void FindingEvent(const EventAttributes& about);

/// Has what is observed be read with the rest; only the first call does anything.
void Install();

/// The first barrier or request of the process.
void Start();

}  // namespace antipode::telemetry

#endif  // ANTIPODE_ENGINE_MEASURES_H_
