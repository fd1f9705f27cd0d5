// What dry-run finds beside barriers and reads, as records (spec REC-4, REC-17, REC-18). To be called in dry-run, and
// without a lock of a scope.
#ifndef ANTIPODE_SRC_FINDINGS_H_
#define ANTIPODE_SRC_FINDINGS_H_

#include <string>
#include <string_view>

#include "antipode/scope.h"

namespace antipode::findings {

// A lineage left before the commit of this thread's own write to a store (SCOPE-18).
void PublishedBeforeCommit(const std::string& site, const std::string& store, const std::string& written_at);

// A lineage left while a write of another thread was in flight: no violation (SCOPE-18).
void ConcurrentWrite(const std::string& site, const std::string& store, const std::string& written_at);

// A write was made outside any scope (SCOPE-9).
void Orphan(const std::string& site, const std::string& store);

// A write was made in a scope that had ended (`closed`), or after the response's header had left (`sent`).
void LateWrite(const std::string& site, const std::string& store, const std::string& reason);

// A lineage became incomplete, or came in so (`received`). Null: outside any scope; the site is empty where nobody
// knows it.
void Incomplete(const std::string& reason, const std::string& store, const LineageScope* scope,
                const std::string& site);

// The scope's lineage leaves with a call to this host (REC-18).
void PassedOn(LineageScope& scope, std::string_view target, const std::string& site);

// A write is begun (REC-16).
void CountWrite(const std::string& store);

}  // namespace antipode::findings

#endif  // ANTIPODE_SRC_FINDINGS_H_
