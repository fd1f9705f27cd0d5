// A fork: the child ends nothing of its parent's (SCOPE-13).
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "regions.h"
#include "session.h"

namespace antipode::postgresql::tests {
namespace {

TEST(Forks, TheChildEndsNoConnectionOfTheParents) {
  const Result<Target> target = TargetOf(Regions::Shared().Url("a"));
  ASSERT_TRUE(target.ok());
  auto session = std::make_unique<Session>(*target, 10s);
  const std::string backend = session->One("SELECT pg_backend_pid()").at(0).value_or("");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    session.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(session->One("SELECT pg_backend_pid()").at(0).value_or(""), backend);
}

}  // namespace
}  // namespace antipode::postgresql::tests
