// What a run's services are told: benchmarks/services.md, "The setup".
#ifndef ANTIPODE_EXAMPLES_SERVICES_SETUP_H_
#define ANTIPODE_EXAMPLES_SERVICES_SETUP_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace services {

inline constexpr const char* kPosts = "blog-posts";             // the logical names of store and queue,
inline constexpr const char* kNotifications = "notifications";  // the same in every service

// What keeps a service from its work; its words go to whoever asked, and to standard error.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Setup {
  // Reads one line of JSON; throws where that is none, or says what this host cannot do.
  static Setup FromJson(const std::string& text);

  bool barrier_in_follower() const { return antipode && barrier == "follower"; }
  bool wait_on_read() const { return antipode && barrier == "wait-on-read"; }
  const std::string& address(const std::string& service) const;
  // The posts' servers in region B, by name.
  std::map<std::string, std::string> replicas() const;

  std::string post_storage;
  std::string notifier;
  std::string barrier;
  std::chrono::nanoseconds timeout{};
  int consumers = 0;
  bool antipode = false;
  std::map<std::string, std::string> addresses;
  std::map<std::string, std::string> posts;
  std::map<std::string, std::string> queues;
  std::string exchange;
  std::string queue;
  // Of a worker: each store's servers by name, and as `here` the one at which it reads.
  std::map<std::string, std::map<std::string, std::string>> stores;
  // Of a worker: `envelope` where lineages rest beside its values.
  std::string rest;
  // Of a worker: `asynchronous`, or `blocking`.
  std::string clients;
};

// The setup in force. A later one changes where calls and messages go; nothing else does.
class CurrentSetup {
 public:
  explicit CurrentSetup(Setup setup) : setup_(std::make_shared<const Setup>(std::move(setup))) {}

  std::shared_ptr<const Setup> get() const {
    const std::lock_guard lock(mutex_);
    return setup_;
  }

  void Redirect(const Setup& told) {
    Setup next = *get();
    next.addresses = told.addresses;
    next.notifier = told.notifier;
    next.exchange = told.exchange;
    const std::lock_guard lock(mutex_);
    setup_ = std::make_shared<const Setup>(std::move(next));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Setup> setup_;
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_SETUP_H_
