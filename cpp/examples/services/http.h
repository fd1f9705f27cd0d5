// A service's server and its calls to other services, by cpp-httplib. What Antipode needs there is in http.cpp:
// `Door::Answer` has the server's part, `Calls::Send` the client's.
#ifndef ANTIPODE_EXAMPLES_SERVICES_HTTP_H_
#define ANTIPODE_EXAMPLES_SERVICES_HTTP_H_

#include <httplib.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pool.h"
#include "traffic.h"

namespace services {

// JSON by a name under which cpp-httplib does not think of compressing it.
inline constexpr const char* kJson = "application/json; charset=utf-8";

using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;

// The header lines of a request, without what cpp-httplib puts among them.
httplib::Headers LinesOf(const httplib::Request& request);

// Where a service answers: a free port of loopback, a thread a connection.
class Door {
 public:
  Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  int port() const { return port_; }
  void Get(const std::string& path, Handler handler) { server_.Get(path, Guarded(std::move(handler))); }
  void Post(const std::string& path, Handler handler) { server_.Post(path, Guarded(std::move(handler))); }
  // The benchmark's own questions: behind no middleware, and not counted.
  void Control(const std::string& path, Handler handler) { server_.Get(path, std::move(handler)); }
  // Answers from now on, until the process ends.
  void Open(bool antipode);

 private:
  Handler Guarded(Handler handler);
  void Answer(const Handler& handler, const httplib::Request& request, httplib::Response& response);

  httplib::Server server_;
  Traffic traffic_;
  int listener_ = -1;
  int port_ = -1;
  bool antipode_ = false;
};

// What another service said.
struct Said {
  int status = 0;
  std::string body;
  httplib::Headers headers;

  std::string header(const std::string& name) const;
};

// Calls to other services, in the context and the scope of the thread that makes them.
class Calls {
 public:
  explicit Calls(bool antipode) : antipode_(antipode) {}

  Said Get(const std::string& base, const std::string& path);
  // Throws where the answer's status is another one.
  Said Post(const std::string& base, const std::string& path, const std::string& body, const char* type, int want);

 private:
  using Sending = std::function<httplib::Result(httplib::Client&, const httplib::Headers&)>;
  Said Send(const std::string& base, const std::string& what, const Sending& sending);
  Pool<httplib::Client>& ClientsOf(const std::string& base);

  const bool antipode_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Pool<httplib::Client>>> clients_;
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_HTTP_H_
