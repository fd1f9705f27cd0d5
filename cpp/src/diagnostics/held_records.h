/// \file
/// Records that a request each could make: one at once, then one a minute with how many there were (spec REC-17).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_HELD_RECORDS_H_
#define ANTIPODE_SRC_DIAGNOSTICS_HELD_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "diagnostics/record.h"

namespace antipode {

/// What was written last of each key, and what has been held back since. Not safe for threads by itself.
class HeldRecords {
 public:
  /// Whether the record is to be written now; if not, it counts for the next of its key.
  bool Admit(std::string key, const Record& record, TimePoint now);

  /// Those of the keys whose minute is over, or all of them: the last of each, with the number of them.
  std::vector<Record> Due(TimePoint now, bool all);

 private:
  struct Held {
    Record last;
    std::int64_t count;
  };

  bool IsOver(const std::string& key, TimePoint now) const;

  std::map<std::string, TimePoint> written_;
  std::map<std::string, Held> held_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_HELD_RECORDS_H_
