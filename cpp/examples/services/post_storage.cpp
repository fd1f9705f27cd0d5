// post-storage: writes posts in region A, and reads them in region B.
#include <openssl/rand.h>

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "pool.h"
#include "posts.h"
#include "services.h"

namespace services {
namespace {

using Connections = Pool<PostsConnection>;

std::shared_ptr<Connections> ConnectionsTo(const Site& site, const std::string& server) {
  return std::make_shared<Connections>([setup = site.setup.get(), server] { return ConnectPosts(*setup, server); });
}

std::string NewId() {
  std::array<unsigned char, 16> octets{};
  if (RAND_bytes(octets.data(), static_cast<int>(octets.size())) != 1) throw Failure("no random octets");
  std::string digits;
  for (const unsigned char octet : octets) {
    digits += "0123456789abcdef"[octet >> 4U];
    digits += "0123456789abcdef"[octet & 15U];
  }
  return digits;
}

}  // namespace

void BuildPostStorageA(const Site& site) {
  const auto primary = ConnectionsTo(site, "a");
  site.door.Post("/posts", [primary](const httplib::Request& request, httplib::Response& response) {
    const std::string post = NewId();
    const auto [sent, acknowledged] = primary->With([&](PostsConnection& connection) {
      const std::int64_t before = MonotonicNs();
      connection.Write("post:" + post, request.body);
      return std::pair(before, MonotonicNs());
    });
    response.status = 201;
    response.set_content(
        nlohmann::json{{"id", post}, {"acknowledged_ns", acknowledged}, {"write_ns", acknowledged - sent}}.dump(),
        kJson);
  });
}

void BuildPostStorageB(const Site& site) {
  struct Replicas {
    std::vector<std::pair<std::string, std::shared_ptr<Connections>>> all;
    std::atomic<std::size_t> turn{0};
  };
  const auto replicas = std::make_shared<Replicas>();
  for (const auto& [name, url] : site.setup.get()->replicas()) {
    replicas->all.emplace_back(name, ConnectionsTo(site, name));
  }
  if (replicas->all.empty()) throw Failure("the setup has no replica of the posts");

  site.door.Get("/posts/([0-9a-f]+)", [replicas](const httplib::Request& request, httplib::Response& response) {
    const auto& [name, connections] = replicas->all[replicas->turn++ % replicas->all.size()];
    const auto found = connections->With(
        [&](PostsConnection& connection) { return connection.Read("post:" + request.matches[1].str()); });
    response.set_header(kReplicaHeader, name);
    response.set_header(kReadAtHeader, std::to_string(MonotonicNs()));
    response.status = found ? 200 : 404;
    if (found) response.set_content(*found, "application/octet-stream");
  });
}

}  // namespace services
