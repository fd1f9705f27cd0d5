// The paper's example (section 2.2): a follower is told of a post that has not reached the follower's region yet.
//
//     cmake -S cpp/examples -B build/examples && cmake --build build/examples && build/examples/post_notification
//
// prints
//
//     without Antipode: 5 of 5 followers did not find the post
//     with Antipode:    0 of 5 followers did not find the post
//
// Four services in one process, two regions. `benchmarks/cpp` has them as processes that speak HTTP.
#include <antipode/antipode.h>
#include <antipode/memory.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 5;

// What goes through the queue: headers and a body, as in any broker.
struct Message {
  std::map<std::string, std::string> headers;
  std::string post;
};

class Queue {
 public:
  void Put(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push(std::move(message));
    came_.notify_one();
  }

  Message Get() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, 10s, [this] { return !messages_.empty(); })) std::abort();
    Message message = std::move(messages_.front());
    messages_.pop();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::queue<Message> messages_;
};

struct Application {
  antipode::MemoryStore posts{"blog-posts", {"a", "b"}};
  antipode::MemoryClient posts_a = posts.Client("a");
  antipode::MemoryClient posts_b = posts.Client("b");
  Queue notifications;

  // Region A

  // A user's request. In a service `ExtractRequest` opens the scope.
  void PostUpload(const std::string& post, const std::string& text) {
    const antipode::Scope scope;
    PostStorage(post, text);
    Notifier(post);
  }

  void PostStorage(const std::string& post, const std::string& text) {
    if (!posts_a.Set(post, text).ok()) std::abort();
  }

  // Shims of queues write this header by themselves.
  void Notifier(const std::string& post) {
    notifications.Put({{{"antipode-lineage", *antipode::Serialize()}}, post});
  }

  // Region B

  // Takes one message and reads the post that it speaks of; whether that was found.
  bool FollowerNotify(bool wait) {
    const Message message = notifications.Get();
    const antipode::Scope scope = antipode::MessageScope(antipode::HeaderCarrier(message.headers));
    if (wait && antipode::Barrier(antipode::BarrierOptions().Timeout(10s)).error() != nullptr) std::abort();
    return posts_b.Get(message.post).value.has_value();
  }
};

// Runs the requests; for how many of them the follower did not find the post.
int NotFound(Application& application, bool wait) {
  int missing = 0;
  for (int number = 0; number < kRequests; ++number) {
    const std::string post = (wait ? "with:" : "without:") + std::to_string(number);
    application.posts.Freeze("b");  // the link between the regions is slow just now
    auto found = std::async(std::launch::async, [&application, wait] { return application.FollowerNotify(wait); });
    application.PostUpload(post, "Hello");
    if (wait) {
      std::this_thread::sleep_for(50ms);  // with a barrier the follower is waiting by now, or will be
    } else {
      found.wait();
    }
    application.posts.Heal("b");
    if (!found.get()) ++missing;
  }
  return missing;
}

}  // namespace

int main() {
  Application application;
  for (const auto& [words, wait] : {std::pair("without Antipode: ", false), std::pair("with Antipode:    ", true)}) {
    std::cout << words << NotFound(application, wait) << " of " << kRequests << " followers did not find the post\n";
  }
}
