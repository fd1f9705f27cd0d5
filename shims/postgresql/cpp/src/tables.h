// Which tables a statement reads, by its text: what a recorded history is told of it (spec HIST-36).
#ifndef ANTIPODE_POSTGRESQL_SRC_TABLES_H_
#define ANTIPODE_POSTGRESQL_SRC_TABLES_H_

#include <string>
#include <string_view>
#include <vector>

namespace antipode::postgresql {

// By their names in the text, as its server folds them, each once; an empty name where it reads and nobody can tell
// what, or for all beyond 32; nothing where it reads no data. What stands in literals is none of it. Of what writes,
// what it returns is no read.
std::vector<std::string> TablesRead(std::string_view text);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_TABLES_H_
