// What dry-run finds beside barriers, as records (spec REC-4).
#ifndef ANTIPODE_SRC_FINDINGS_H_
#define ANTIPODE_SRC_FINDINGS_H_

#include <string>

namespace antipode::findings {

// A lineage left before the commit of this thread's own write to a store (SCOPE-18).
void PublishedBeforeCommit(const std::string& site, const std::string& store, const std::string& written_at);

// A write was made outside any scope (SCOPE-9).
void Orphan(const std::string& site, const std::string& store);

}  // namespace antipode::findings

#endif  // ANTIPODE_SRC_FINDINGS_H_
