// Makes write identifiers of parts that have been checked.
#ifndef ANTIPODE_SRC_MODEL_WRITE_ID_ACCESS_H_
#define ANTIPODE_SRC_MODEL_WRITE_ID_ACCESS_H_

#include <string>
#include <utility>

#include "antipode/write_id.h"

namespace antipode {

struct WriteIdAccess {
  static WriteId Make(std::string store, std::string key, Version version) {
    return WriteId(std::move(store), std::move(key), std::move(version));
  }
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_WRITE_ID_ACCESS_H_
