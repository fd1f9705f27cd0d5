// Which statements dry-run may send once more, by their text (spec REC-23).
#ifndef ANTIPODE_POSTGRESQL_SRC_REPEATABLE_H_
#define ANTIPODE_POSTGRESQL_SRC_REPEATABLE_H_

#include <string_view>

namespace antipode::postgresql {

// Whether it is one read, without side effects, that says the same of the same data, as far as its text shows: where
// that is not sure it is not.
bool IsRepeatable(std::string_view text);

// Whether it may have changed what a later statement of its session means (SET, set_config, a temporary table).
bool ChangesSession(std::string_view text);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_REPEATABLE_H_
