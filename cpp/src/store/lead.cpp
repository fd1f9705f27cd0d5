#include "antipode/shim/lead.h"

#include <poll.h>

namespace antipode {

bool Lead::IsOpen() const noexcept {
  if (descriptor_.value_or(-1) < 0) return true;
#ifdef POLLRDHUP
  constexpr short kClosed = POLLRDHUP;
#else
  constexpr short kClosed = 0;
#endif
  pollfd asked{*descriptor_, kClosed, 0};
  return poll(&asked, 1, 0) <= 0 || (asked.revents & (kClosed | POLLHUP | POLLERR | POLLNVAL)) == 0;
}

}  // namespace antipode
