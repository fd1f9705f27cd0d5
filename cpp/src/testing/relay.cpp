#include "testing/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace antipode::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int NewSocket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) throw std::system_error(errno, std::generic_category(), "a relay");
  return made;
}

}  // namespace

Relay::Relay(int leads_to) : leads_to_(leads_to), listens_(NewSocket()) {
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listens_, plain, length) != 0 || listen(listens_, 16) != 0 || getsockname(listens_, plain, &length) != 0) {
    throw std::system_error(errno, std::generic_category(), "a relay");
  }
  port_ = ntohs(address.sin_port);
  accepts_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  ends_.store(true);
  shutdown(listens_, SHUT_RDWR);
  accepts_.join();
  for (const int each : sockets_) shutdown(each, SHUT_RDWR);
  for (std::thread& thread : threads_) thread.join();
  for (const int each : sockets_) close(each);
  close(listens_);
}

void Relay::Accept() {
  while (!ends_.load()) {
    const int from = accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
    if (from < 0) continue;
    const int to = NewSocket();
    const sockaddr_in address = Loopback(leads_to_.load());
    if (connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) shutdown(from, SHUT_RDWR);
    ++opened_;
    const std::lock_guard<std::mutex> lock(mutex_);
    sockets_.insert(sockets_.end(), {from, to});
    threads_.emplace_back([this, from, to] {
      while (holds_.load() && !ends_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Carry(from, to);
    });
    threads_.emplace_back([from, to] { Carry(to, from); });
  }
}

void Relay::Carry(int from, int to) {
  char octets[4096];
  for (ssize_t got = 0; (got = recv(from, octets, sizeof octets, 0)) > 0;) {
    if (send(to, octets, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  shutdown(to, SHUT_WR);
}

}  // namespace antipode::testing
