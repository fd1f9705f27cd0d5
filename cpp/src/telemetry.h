// What is counted, by the names of the specification (spec OBS). Plain numbers: an exporter reads them.
#ifndef ANTIPODE_SRC_TELEMETRY_H_
#define ANTIPODE_SRC_TELEMETRY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace antipode::telemetry {

// A lineage was not taken or sent: `untrusted`, `malformed`, `seal` or `implausible`.
void Dropped(std::string_view reason, std::string_view direction);

// A lineage became incomplete here; the store is empty where it is not known.
void Incomplete(std::string_view reason, std::string_view store);

// A write that no scope records: `orphan` or `closed`.
void WriteLost(std::string_view reason, std::string_view store, std::string_view site);

// A write after the response's header had left.
void WriteLate(std::string_view store, std::string_view site);

// The length of a lineage's text that came or went.
void Size(std::string_view direction, std::size_t bytes);

// A finding of dry-run: `published_before_commit` and so on.
void Finding(std::string_view kind, std::string_view site);

// What was counted since the start or `Reset`: `antipode.write.lost{antipode.reason=orphan,…}` to a number.
std::map<std::string, std::uint64_t> Counts();

// A call site as an attribute: past 1,000 different ones, `other` (OBS-6).
std::string Bounded(std::string_view site);

// Forgets counts and sites (tests).
void Reset();

}  // namespace antipode::telemetry

#endif  // ANTIPODE_SRC_TELEMETRY_H_
