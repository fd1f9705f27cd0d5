// What leaves outside any scope (spec SCOPE-31, SCOPE-32).
#ifndef ANTIPODE_SRC_SCOPE_UNSCOPED_H_
#define ANTIPODE_SRC_SCOPE_UNSCOPED_H_

#include "antipode/lineage.h"
#include "antipode/site.h"
#include "trust/trust.h"

namespace antipode {

class Writing;

// What leaves outside any scope: empty, and incomplete, counted and told once a site, where this process has known
// lineages (SCOPE-31).
Lineage LineageOutside(Direction direction, const Site& site);

// What is to rest beside a value that is written outside any scope: likewise (SCOPE-32). `write`: its own, where it
// has begun; `lineage_out`: whether values get lineages here.
Lineage LineageUnscoped(bool lineage_out, const Site& site, const Writing* write = nullptr);

}  // namespace antipode

#endif  // ANTIPODE_SRC_SCOPE_UNSCOPED_H_
