#include "setup.h"

#include <nlohmann/json.hpp>

namespace services {
namespace {

void WantOneOf(const char* field, const std::string& value, std::initializer_list<const char*> known) {
  for (const char* each : known) {
    if (value == each) return;
  }
  throw Failure(std::string(field) + " " + value + ": these services do not know it");
}

}  // namespace

Setup Setup::FromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  const auto& options = json.at("options");
  Setup setup;
  setup.post_storage = options.at("post_storage");
  setup.notifier = options.at("notifier");
  setup.barrier = options.at("barrier");
  setup.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.at("timeout").get<double>()));
  setup.consumers = options.at("consumers");
  setup.antipode = json.at("antipode");
  json.at("addresses").get_to(setup.addresses);
  json.at("posts").get_to(setup.posts);
  json.at("queues").get_to(setup.queues);
  setup.exchange = json.at("exchange");
  setup.queue = json.at("queue");
  if (json.contains("stores")) json.at("stores").get_to(setup.stores);
  setup.rest = json.value("rest", "none");
  setup.clients = json.value("clients", "blocking");
  WantOneOf("post_storage", setup.post_storage, {"redis", "postgresql"});
  WantOneOf("notifier", setup.notifier, {"http", "rabbitmq"});
  WantOneOf("barrier", setup.barrier, {"follower", "wait-on-read", "nowhere", "none"});
  return setup;
}

const std::string& Setup::address(const std::string& service) const {
  const auto found = addresses.find(service);
  if (found == addresses.end()) throw Failure("the setup does not say where " + service + " is");
  return found->second;
}

std::map<std::string, std::string> Setup::replicas() const {
  std::map<std::string, std::string> found = posts;
  found.erase("a");
  return found;
}

}  // namespace services
