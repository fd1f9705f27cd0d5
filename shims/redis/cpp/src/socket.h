// A connected socket within a time.
#ifndef ANTIPODE_REDIS_SOCKET_H_
#define ANTIPODE_REDIS_SOCKET_H_

#include <chrono>
#include <string>

#include "target.h"

namespace antipode::redis {

// A non-blocking, connected socket; -1 and the words where there is none. Names are resolved by the system, in its own
// time.
int ConnectSocket(const Target& target, std::chrono::steady_clock::time_point deadline, std::string& words);

// Waits until the socket can be read (or written); false where the deadline came first.
bool WaitSocket(int socket, bool to_write, std::chrono::steady_clock::time_point deadline);

// What the system calls an error.
std::string WordsOf(int error);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_SOCKET_H_
