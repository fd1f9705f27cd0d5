/// \file
/// What dry-run's summaries count: plain numbers that only grow (spec REC-16).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_COUNTS_H_
#define ANTIPODE_SRC_DIAGNOSTICS_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "antipode/export.h"
#include "base/json.h"

namespace antipode ANTIPODE_EXPORT {
namespace counts {

/// What is counted, and where: the site and the store, as far as they belong to it.
using Counted = std::tuple<std::string, std::string, std::string>;
using Numbers = std::map<Counted, std::uint64_t>;

/// One more. Past ten thousand different ones new ones are counted without their site.
void Add(std::string_view what, const std::string& site, const std::string& store);

/// A request's or message's scope was opened: counted without a lock, in every mode.
void AddRequest() noexcept;
void AddMessage() noexcept;

/// A barrier that waited for all it was asked for has passed (REC-26); likewise.
void AddEnforced() noexcept;

/// Every count as it is now.
Numbers Now();

/// What was counted between two such, as summaries have it.
std::vector<JsonObject> Between(const Numbers& before, const Numbers& now);

/// Counts from nothing (tests, and the child of a fork).
void Reset();

}  // namespace counts
}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_COUNTS_H_
