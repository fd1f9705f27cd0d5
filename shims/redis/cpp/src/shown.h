// What becomes of a command's reply before the application gets it, where lineages rest beside values.
#ifndef ANTIPODE_REDIS_SHOWN_H_
#define ANTIPODE_REDIS_SHOWN_H_

#include <vector>

#include "antipode/lineage.h"

namespace antipode::redis {

// How one command's reply is to be read.
struct Shown {
  enum class How {
    kAsItIs,
    kValue,       // one value, perhaps in an envelope
    kValues,      // many, of which those in `which` may be
    kPairs,       // fields and values of a hash (HGETALL)
    kPairValues,  // the same, of which the application asked for the values (HVALS)
    kNames,       // fields of a hash
    kScan,        // a cursor, and fields with values
    kScanNames,   // a cursor, and fields
    kHash,        // a part of a hash, without the field in which its lineage is
  };

  How how = How::kAsItIs;
  std::vector<bool> which = {};

  bool is_plain() const { return how == How::kAsItIs; }
};

// What rested beside what was read.
struct Beside {
  Lineage lineage;
  bool missed = false;  // something rests there that this command does not read

  void Add(const Beside& other) {
    lineage |= other.lineage;
    missed = missed || other.missed;
  }
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_SHOWN_H_
