#include "http.h"

#include <antipode/antipode.h>
#include <sys/socket.h>

#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "setup.h"
#include "tracing.h"

namespace services {
namespace {

constexpr time_t kCallTimeoutS = 30;
constexpr time_t kKeepAliveS = 300;
constexpr std::size_t kRequestsPerConnection = 1'000'000;
constexpr int kBacklog = 512;

// A connection keeps its thread for as long as it is kept alive: a pool would be full of idle ones.
class ThreadPerConnection : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override { std::thread(std::move(serve)).detach(); }
  void shutdown() override {}  // they end with the process
};

std::string HostOf(const std::string& base) { return base.substr(base.find("://") + 3); }

}  // namespace

httplib::Headers LinesOf(const httplib::Request& request) {
  httplib::Headers lines = request.headers;
  for (const char* own : {"REMOTE_ADDR", "REMOTE_PORT", "LOCAL_ADDR", "LOCAL_PORT"}) lines.erase(own);
  return lines;
}

Door::Door() {
  server_.new_task_queue = [] { return new ThreadPerConnection(); };
  server_.set_tcp_nodelay(true);
  server_.set_keep_alive_max_count(kRequestsPerConnection);
  server_.set_keep_alive_timeout(kKeepAliveS);
  server_.set_read_timeout(kCallTimeoutS);
  server_.set_write_timeout(kCallTimeoutS);
  server_.set_socket_options([this](int socket) { listener_ = socket; });
  port_ = server_.bind_to_any_port("127.0.0.1");
  // The library's queue has five places: the sixth that connects at once would wait for a second.
  if (port_ <= 0 || listen(listener_, kBacklog) != 0) throw Failure("no port of 127.0.0.1 is free");
}

void Door::Open(bool antipode) {
  antipode_ = antipode;
  Control("/-/traffic", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(traffic_.ToJson(), kJson);
  });
  std::thread([this] {
    server_.listen_after_bind();
    std::cerr << "a server has ended\n" << std::flush;
    std::_Exit(1);
  }).detach();
}

Handler Door::Guarded(Handler handler) {
  return [this, handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
    const httplib::Headers lines = LinesOf(request);
    traffic_.CountRequest(Measure(antipode::HeaderCarrier(lines)));
    const Continued context{antipode::HeaderCarrier(lines)};
    if (antipode_) {
      antipode::Scope scope = antipode::ExtractRequest(antipode::HeaderCarrier(lines), request.remote_addr);
      Answer(handler, request, response);
      scope.InjectResponse(antipode::HeaderCarrier(response.headers), request.method, response.status);
    } else {
      Answer(handler, request, response);
    }
    traffic_.CountResponse(Measure(antipode::HeaderCarrier(response.headers)));
  };
}

void Door::Answer(const Handler& handler, const httplib::Request& request, httplib::Response& response) {
  try {
    handler(request, response);
  } catch (const std::exception& error) {
    std::cerr << request.method + " " + request.path + ": " + error.what() + "\n" << std::flush;
    response.status = 500;
    response.set_content(error.what(), "text/plain");
  }
}

std::string Said::header(const std::string& name) const {
  const auto found = headers.find(name);
  if (found == headers.end()) throw Failure("an answer has no header " + name);
  return found->second;
}

Said Calls::Get(const std::string& base, const std::string& path) {
  return Send(base, "GET " + path, [&path](httplib::Client& client, const httplib::Headers& headers) {
    return client.Get(path, headers);
  });
}

Said Calls::Post(const std::string& base, const std::string& path, const std::string& body, const char* type,
                 int want) {
  Said said = Send(base, "POST " + path, [&](httplib::Client& client, const httplib::Headers& headers) {
    return client.Post(path, headers, body, type);
  });
  if (said.status != want) {
    throw Failure("POST " + base + path + " was answered " + std::to_string(said.status) + ": " + said.body);
  }
  return said;
}

Said Calls::Send(const std::string& base, const std::string& what, const Sending& sending) {
  httplib::Headers headers;
  antipode::HeaderCarrier leaves(headers);
  InjectContext(leaves);
  if (antipode_) {
    if (const auto error = antipode::InjectRequest(leaves, HostOf(base))) throw Failure(error->message);
  }
  return ClientsOf(base).With([&](httplib::Client& client) {
    httplib::Result result = sending(client, headers);
    if (!result) {
      const std::string words = httplib::to_string(result.error());
      if (antipode_) antipode::Unanswered(HostOf(base), words);
      throw Failure(what + " of " + base + ": " + words);
    }
    if (antipode_) antipode::ExtractResponse(antipode::HeaderCarrier(result->headers), HostOf(base));
    return Said{result->status, std::move(result->body), std::move(result->headers)};
  });
}

Pool<httplib::Client>& Calls::ClientsOf(const std::string& base) {
  const std::lock_guard lock(mutex_);
  auto& pool = clients_[base];
  if (pool == nullptr) {
    pool = std::make_unique<Pool<httplib::Client>>([base] {
      auto client = std::make_unique<httplib::Client>(base);
      client->set_keep_alive(true);
      client->set_tcp_nodelay(true);
      client->set_connection_timeout(kCallTimeoutS);
      client->set_read_timeout(kCallTimeoutS);
      client->set_write_timeout(kCallTimeoutS);
      return client;
    });
  }
  return *pool;
}

}  // namespace services
