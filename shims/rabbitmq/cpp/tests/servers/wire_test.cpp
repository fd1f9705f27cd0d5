// What a connection keeps of what came, and what it needs to end its calls.
#include "wire.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "broker.h"
#include "octets.h"
#include "region.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::HasSubstr;
using WireTest = RabbitTest;

constexpr std::size_t kMost = 1000;

amqp_connection_state_t Opened(const std::string& url) {
  auto opened = Open(*Place::Parse(url), 10s);
  return std::get<amqp_connection_state_t>(opened);
}

TEST_F(WireTest, ReadsNoMoreMessagesThanItKeeps) {
  const std::string queue = a_.Queue();
  constexpr int kSent = 3 * static_cast<int>(kMost);
  for (int number = 0; number < kSent; ++number) a_.own().Publish("", queue, std::to_string(number));
  Wire wire(Opened(a_.url()), 10s);
  ASSERT_TRUE(wire.Ask(1, [&] {
    amqp_basic_consume(wire.state(), 1, Octets(queue), amqp_empty_bytes, 0, 1, 0, amqp_empty_table);
    return amqp_get_rpc_reply(wire.state());
  }).ok());
  ASSERT_TRUE(Until([&] {
    wire.Drain();
    return wire.delivered.size() >= kMost;
  }));
  for (int again = 0; again < 20; ++again) wire.Drain();
  EXPECT_EQ(wire.delivered.size(), kMost);
  for (int number = 0; number < kSent; ++number) {  // the others are there
    ASSERT_TRUE(Until([&] {
      wire.Drain();
      return !wire.delivered.empty();
    }));
    ASSERT_EQ(wire.delivered.front().envelope.body(), std::to_string(number));
    wire.delivered.pop_front();
  }
}

// While it lives, this process opens no more descriptors.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    rlimit fewer = before_;
    fewer.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &fewer);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(WireTest, AConnectionWhoseCallsCouldNotEndIsRefused) {
  amqp_connection_state_t const state = Opened(a_.url());
  const Result<Connection> wrapped = [&] {
    const NoMoreDescriptors none;
    return Wrap(state, Options(kStore));
  }();
  ASSERT_FALSE(wrapped.ok());
  EXPECT_EQ(wrapped.error().code, ErrorCode::kConfiguration);
  EXPECT_THAT(wrapped.error().message, HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace antipode::rabbitmq
