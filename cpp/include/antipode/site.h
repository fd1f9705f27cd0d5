/// \file
/// Where in the application something happened: `file:line`, for findings, logs and metrics.
#ifndef ANTIPODE_SITE_H_
#define ANTIPODE_SITE_H_

#include <string>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// A place in the application's source. As a default argument it is the place of the call.
class Site {
 public:
  /// The place where this is called, or where a function is called of which `Site site = Site()` is an argument.
  constexpr explicit Site(const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : file_(file), line_(line) {}

  /// `folder/file.cpp:31`.
  std::string ToString() const;

 private:
  const char* file_;
  int line_;
};

}  // namespace antipode

#endif  // ANTIPODE_SITE_H_
