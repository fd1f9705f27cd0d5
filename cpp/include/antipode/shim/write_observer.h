/// \file
/// What who observes writes is told of one of them (spec HIST-27).
#ifndef ANTIPODE_SHIM_WRITE_OBSERVER_H_
#define ANTIPODE_SHIM_WRITE_OBSERVER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {
namespace history {

/// What a key holds, as far as a history is told; values have no digests here (HIST-37).
enum class Content { kUnknown, kNothing, kSomething };

/// What a write did to one key.
struct KeyChange {
  std::string key;
  /// What the key holds from now on.
  Content content = Content::kUnknown;
  /// Whether it may go by itself.
  bool expires = false;
};

}  // namespace history

/// One write, from before it is sent until it is known what became of it; where nobody says so, that is unknown.
class WriteObserver {
 public:
  WriteObserver() = default;
  WriteObserver(const WriteObserver&) = delete;
  WriteObserver& operator=(const WriteObserver&) = delete;
  virtual ~WriteObserver() = default;

  /// What it does to which keys, in their order; an empty list where it changes none, nothing where nobody knows.
  virtual void Changes(std::optional<std::vector<history::KeyChange>> changed) noexcept = 0;
  /// It has happened, with this identifier where there is one. `key`: the object's, where it is one's.
  virtual void Done(const std::optional<WriteId>& write_id, std::string_view key = {}) noexcept = 0;
  /// Nobody knows whether it happened.
  virtual void Unknown(std::string_view key = {}) noexcept = 0;
  /// It did not happen.
  virtual void NotDone() noexcept = 0;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_WRITE_OBSERVER_H_
