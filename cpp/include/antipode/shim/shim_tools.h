/// \file
/// What shims tell the core beside answers (spec EPOCH-26, OBS-2, BAR-48, SHIM-35).
#ifndef ANTIPODE_SHIM_SHIM_TOOLS_H_
#define ANTIPODE_SHIM_SHIM_TOOLS_H_

#include <functional>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {

/// A shim may not mark this store's epochs, and why; with an empty reason: it may (EPOCH-26).
void NoteMarks(const std::string& store, const std::string& missing);

/// A server got a request of ours that the engine does not know of: `mark`.
void CountRequest(const std::string& store, std::string_view purpose);

/// A lineage left incomplete for this store, or was left out: `budget` and the like (PROP-19).
void CountIncomplete(std::string_view reason, const std::string& store);

/// What rests beside a value of this store cannot be read: counted, and what it held is missing (SHIM-35).
void CountMalformedAtRest(const std::string& store);

/// What one scope depends on goes into another of this process, which a recorded history is told (HIST-26); one of them
/// may be null.
void NoteJoined(const ScopePtr& ended, const ScopePtr& scope);

/// Runs this on a thread that nobody joins, with every signal blocked: they are for the application's own. Throws
/// `std::system_error` or `std::bad_alloc` where none is to be had (BAR-61).
void Detach(const std::string& name, std::function<void()> work);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_SHIM_TOOLS_H_
