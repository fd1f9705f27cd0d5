#include "socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace antipode::redis {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

int Connected(int family, const sockaddr* address, socklen_t size, TimePoint deadline, std::string& words) {
  const int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    words = WordsOf(errno);
    return -1;
  }
  if (connect(made, address, size) == 0) return made;
  int error = errno;
  if (error == EINPROGRESS) {
    socklen_t length = sizeof error;
    if (!WaitSocket(made, true, deadline)) {
      error = ETIMEDOUT;
    } else if (getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0) {
      return made;
    }
  }
  words = WordsOf(error);
  close(made);
  return -1;
}

int ConnectUnix(const std::string& path, TimePoint deadline, std::string& words) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    words = "the path of the socket is too long";
    return -1;
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return Connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline, words);
}

}  // namespace

std::string WordsOf(int error) { return std::generic_category().message(error); }

bool WaitSocket(int socket, bool to_write, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd wanted{socket, static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 3600000)));
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    return false;
  }
}

int ConnectSocket(const Target& target, TimePoint deadline, std::string& words) {
  if (!target.path.empty()) return ConnectUnix(target.path, deadline, words);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
      error != 0) {
    words = target.host + ": " + gai_strerror(error);
    return -1;
  }
  int made = -1;
  for (const addrinfo* each = found; each != nullptr && made < 0; each = each->ai_next) {
    made = Connected(each->ai_family, each->ai_addr, each->ai_addrlen, deadline, words);
  }
  freeaddrinfo(found);
  if (made >= 0) {
    const int yes = 1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  return made;
}

}  // namespace antipode::redis
