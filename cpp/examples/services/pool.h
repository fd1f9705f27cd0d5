// Clients that serve one thread at a time, lent to the threads that need one.
#ifndef ANTIPODE_EXAMPLES_SERVICES_POOL_H_
#define ANTIPODE_EXAMPLES_SERVICES_POOL_H_

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace services {

template <class Client>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<Client>()> make) : make_(std::move(make)) {}

  // Does something with a client, which is used again afterwards; not where it threw.
  template <class Work>
  auto With(Work&& work) {
    std::unique_ptr<Client> client = Take();
    auto result = work(*client);
    Return(std::move(client));
    return result;
  }

 private:
  std::unique_ptr<Client> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Client> client = std::move(idle_.back());
        idle_.pop_back();
        return client;
      }
    }
    return make_();
  }

  void Return(std::unique_ptr<Client> client) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(client));
  }

  const std::function<std::unique_ptr<Client>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Client>> idle_;
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_POOL_H_
