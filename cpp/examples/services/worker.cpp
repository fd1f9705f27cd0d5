// worker: does what a plan says, step by step, on several stores of Redis.
#include <antipode/antipode.h>

#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pool.h"
#include "queue.h"
#include "redis_client.h"
#include "services.h"
#include "tracing.h"

namespace services {
namespace {

// Among a store's servers: the one at which the worker reads, and for which its barriers wait.
constexpr const char* kHere = "here";

using Clients = Pool<WrappedRedis>;

std::unique_ptr<Clients> ClientsOf(const std::string& url, const antipode::StoreOptions& options, bool pipelined) {
  return std::make_unique<Clients>(
      [url, options, pipelined] { return std::make_unique<WrappedRedis>(url, options, pipelined); });
}

class Worker {
 public:
  explicit Worker(const Site& site)
      : site_(site),
        asynchronous_(site.setup.get()->clients == "asynchronous"),
        publishers_([setup = site.setup.get()] { return ConnectPublisher(*setup); }) {
    const auto setup = site.setup.get();
    for (const auto& [store, servers] : setup->stores) {
      antipode::StoreOptions options = antipode::StoreOptions(store).Replicas({servers.at(kHere)});
      if (setup->rest == "envelope") options.RestIn("envelope").EnvelopeKeys("*");
      for (const auto& [server, url] : servers) clients_[{store, server}] = ClientsOf(url, options, asynchronous_);
      clients_.at({store, kHere})->With([](WrappedRedis&) {
        return true;
      });  // barriers know every store from the start
    }
  }

  // What came of a visit is kept, and an error too, which is thrown on.
  void Serve(const std::string& body) {
    try {
      const auto visit = nlohmann::json::parse(body);
      nlohmann::json done{{"visit", visit.at("visit")}, {"results", nlohmann::json::array()}};
      for (const auto& step : visit.at("steps")) done["results"].push_back(Take(step));
      const std::lock_guard lock(mutex_);
      visits_.push_back(std::move(done));
    } catch (const std::exception& error) {
      Failed(error.what());
      throw;
    }
  }

  void Failed(const std::string& words) {
    std::cerr << "worker: " + words + "\n" << std::flush;
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = words;
  }

  std::string Show(std::size_t after) const {
    const std::lock_guard lock(mutex_);
    auto shown = nlohmann::json::array();
    for (std::size_t at = after; at < visits_.size(); ++at) shown.push_back(visits_[at]);
    return nlohmann::json{{"failure", failure_}, {"visits", std::move(shown)}}.dump();
  }

 private:
  nlohmann::json Take(const nlohmann::json& step) {
    const std::string what = step.at("do");
    if (what == "write") return Write(step);
    if (what == "read") return Read(step);
    if (what == "barrier") {
      auto options = antipode::BarrierOptions().Timeout(site_.setup.get()->timeout);
      if (step.contains("timeout")) {
        options = antipode::BarrierOptions()
                      .Timeout(std::chrono::duration<double>(step.at("timeout").get<double>()))
                      .OnTimeout(antipode::Policy::kProceed)
                      .OnUnproven(antipode::Policy::kProceed);
      }
      const antipode::BarrierResult result =
          asynchronous_ ? antipode::BarrierAsync(options).get() : antipode::Barrier(options);
      if (result.error() != nullptr) throw Failure(result.error()->message);
      return {{"complete", result.complete()}, {"satisfied", result.satisfied()}};
    }
    const std::string to = step.at("to");
    const std::string visit = step.at("visit").dump();
    if (what == "call") {
      site_.calls.Post(site_.setup.get()->address(to), "/visits", visit, "application/json", 200);
    } else if (what == "send") {
      MessageHeaders headers;
      antipode::HeaderCarrier leaves(headers);
      InjectContext(leaves);
      publishers_.With([&](Publisher& publisher) {
        publisher.Publish(to, headers, visit);
        return true;
      });
    } else {
      throw Failure("no worker can do this: " + what);
    }
    return nlohmann::json::object();
  }

  nlohmann::json Write(const nlohmann::json& step) {
    return clients_.at({step.at("store"), step.at("server")})->With([&](WrappedRedis& redis) -> nlohmann::json {
      const std::int64_t sent = MonotonicNs();
      redis.Set(step.at("key"), step.at("value"));
      return {{"sent_ns", sent}};
    });
  }

  nlohmann::json Read(const nlohmann::json& step) {
    return clients_.at({step.at("store"), kHere})->With([&](WrappedRedis& redis) {
      const std::int64_t sent = MonotonicNs();
      const auto found = redis.Get(step.at("key"));
      nlohmann::json result{{"value", nullptr}, {"sent_ns", sent}};
      if (found) result["value"] = *found;
      return result;
    });
  }

  const Site site_;
  const bool asynchronous_;
  Pool<Publisher> publishers_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Clients>> clients_;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> visits_;
  std::string failure_;
};

// A thread a consumer, each with a connection of its own.
void Consume(const std::shared_ptr<Worker>& worker, const Setup& setup) {
  for (int number = 0; number < setup.consumers; ++number) {
    std::thread([worker, consumer = ConnectConsumer(setup)] {
      try {
        consumer->Run([&worker](const MessageHeaders& headers, const std::string& body) {
          const Continued context{antipode::HeaderCarrier(headers)};
          worker->Serve(body);
        });
      } catch (const std::exception& error) {
        worker->Failed(error.what());
      }
    }).detach();
  }
}

}  // namespace

void BuildWorker(const Site& site) {
  const auto worker = std::make_shared<Worker>(site);
  site.door.Post("/visits", [worker](const httplib::Request& request, httplib::Response& response) {
    worker->Serve(request.body);
    response.set_content("{}", kJson);
  });
  site.door.Control("/-/visits", [worker](const httplib::Request& request, httplib::Response& response) {
    const std::string after = request.get_param_value("after");
    response.set_content(worker->Show(after.empty() ? 0 : std::stoul(after)), kJson);
  });
  Consume(worker, *site.setup.get());
}

}  // namespace services
