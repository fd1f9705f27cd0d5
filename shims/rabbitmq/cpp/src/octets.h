// rabbitmq-c's octets as C++ has them.
#ifndef ANTIPODE_RABBITMQ_OCTETS_H_
#define ANTIPODE_RABBITMQ_OCTETS_H_

#include <amqp.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace antipode::rabbitmq {

inline std::string_view View(const amqp_bytes_t& octets) {
  return octets.len == 0 ? std::string_view() : std::string_view(static_cast<const char*>(octets.bytes), octets.len);
}

// rabbitmq-c takes pointers to what it only reads.
inline amqp_bytes_t Octets(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

inline timeval TimevalOf(std::chrono::nanoseconds duration) {
  const auto microseconds =
      std::chrono::ceil<std::chrono::microseconds>(std::max(duration, std::chrono::nanoseconds::zero()));
  timeval made{};
  made.tv_sec = static_cast<decltype(made.tv_sec)>(microseconds.count() / 1000000);
  made.tv_usec = static_cast<decltype(made.tv_usec)>(microseconds.count() % 1000000);
  return made;
}

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_OCTETS_H_
