// follower-notify: takes a notification in region B and fetches its post. With Antipode it calls `Barrier()` before:
// that is the one line. It has no access to the posts' store but through post-storage, another service.
#include <antipode/antipode.h>
#include <openssl/evp.h>

#include <array>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "posts.h"
#include "queue.h"
#include "services.h"
#include "tracing.h"

namespace services {
namespace {

constexpr const char* kRequestEntry = "benchmark-request";

std::string Sha256(const std::string& octets) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(octets.data(), octets.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw Failure("SHA-256 cannot be computed");
  }
  std::string digits;
  for (unsigned int at = 0; at < length; ++at) {
    digits += "0123456789abcdef"[digest[at] >> 4U];
    digits += "0123456789abcdef"[digest[at] & 15U];
  }
  return digits;
}

class Follower {
 public:
  explicit Follower(const Site& site) : site_(site) {}

  // What came of one notification is kept, and an error too, which is thrown on.
  void Handle(const std::string& body, const Octets& message) {
    try {
      Fetch(body, message);
    } catch (const std::exception& error) {
      Failed(error.what());
      throw;
    }
  }

  void Failed(const std::string& words) {
    std::cerr << "follower-notify: " + words + "\n" << std::flush;
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = words;
  }

  std::string Show(std::size_t after) const {
    const std::lock_guard lock(mutex_);
    auto shown = nlohmann::json::array();
    for (std::size_t at = after; at < deliveries_.size(); ++at) shown.push_back(deliveries_[at]);
    return nlohmann::json{{"failure", failure_}, {"deliveries", std::move(shown)}}.dump();
  }

 private:
  void Fetch(const std::string& body, const Octets& message) {
    const std::int64_t received = MonotonicNs();
    const auto setup = site_.setup.get();
    bool complete = true;
    if (setup->barrier_in_follower()) {
      const antipode::BarrierResult result = antipode::Barrier(antipode::BarrierOptions().Timeout(setup->timeout));
      if (result.error() != nullptr) throw Failure(result.error()->message);
      complete = result.complete();
    }
    const std::int64_t ready = MonotonicNs();
    const std::string post = nlohmann::json::parse(body).at("post");
    const Said found = site_.calls.Get(setup->address("post-storage-b"), "/posts/" + post);
    const std::int64_t done = MonotonicNs();
    if (found.status != 200 && found.status != 404) {
      throw Failure("post-storage-b answered " + std::to_string(found.status) + ": " + found.body);
    }
    nlohmann::json delivery{{"post", post},
                            {"received_ns", received},
                            {"ready_ns", ready},
                            {"done_ns", done},
                            {"read_at_ns", std::stoll(found.header(kReadAtHeader))},
                            {"digest", nullptr},
                            {"replica", found.header(kReplicaHeader)},
                            {"complete", complete},
                            {"trace", TraceId()},
                            {"baggage", BaggageEntry(kRequestEntry)},
                            {"message_bytes", message.all},
                            {"message_lineage_bytes", message.lineage}};
    if (found.status == 200) delivery["digest"] = Sha256(found.body);
    const std::lock_guard lock(mutex_);
    deliveries_.push_back(std::move(delivery));
  }

  const Site site_;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> deliveries_;
  std::string failure_;
};

// A thread a consumer, each with a connection of its own.
void Consume(const std::shared_ptr<Follower>& follower, const Setup& setup) {
  for (int number = 0; number < setup.consumers; ++number) {
    std::thread([follower, consumer = ConnectConsumer(setup)] {
      try {
        consumer->Run([&follower](const MessageHeaders& headers, const std::string& body) {
          const antipode::HeaderCarrier came(headers);
          const Continued context(came);
          follower->Handle(body, Measure(came));
        });
      } catch (const std::exception& error) {
        follower->Failed(error.what());
      }
    }).detach();
  }
}

}  // namespace

void BuildFollowerNotify(const Site& site) {
  const auto setup = site.setup.get();
  if (setup->barrier_in_follower()) RegisterPosts(*setup);
  const auto follower = std::make_shared<Follower>(site);

  site.door.Post("/notifications", [follower](const httplib::Request& request, httplib::Response& response) {
    const httplib::Headers lines = LinesOf(request);
    follower->Handle(request.body, Measure(antipode::HeaderCarrier(lines)));
    response.status = 202;
    response.set_content("{}", kJson);
  });
  site.door.Control("/-/deliveries", [follower](const httplib::Request& request, httplib::Response& response) {
    const std::string after = request.get_param_value("after");
    response.set_content(follower->Show(after.empty() ? 0 : std::stoul(after)), kJson);
  });
  if (setup->queues.count("b") != 0) Consume(follower, *setup);
}

}  // namespace services
