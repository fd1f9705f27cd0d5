// A fork: the child ends nothing of its parent's (SCOPE-13).
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "regions.h"
#include "session.h"

namespace antipode::postgresql::tests {
namespace {

// Ends what is held in a child, and not here; whether the child ended well.
template <class Held>
bool EndedInChild(Held& held) {
  const pid_t child = fork();
  if (child == 0) {
    held.reset();
    _exit(0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

TEST(Forks, TheChildEndsNoConnectionOfTheParents) {
  const Result<Target> target = TargetOf(Regions::Shared().Url("a"));
  ASSERT_TRUE(target.ok());
  auto session = std::make_unique<Session>(*target, 10s);
  const std::string backend = session->One("SELECT pg_backend_pid()").at(0).value_or("");
  EXPECT_TRUE(EndedInChild(session));
  EXPECT_EQ(session->One("SELECT pg_backend_pid()").at(0).value_or(""), backend);
}

TEST(Forks, TheChildEndsNoWrappedConnectionEither) {
  const testing::Isolated isolated;
  auto wrapped = Wrap(PQconnectdb(Regions::Shared().Url("a").c_str()), Options(kStore));
  ASSERT_TRUE(wrapped.ok()) << wrapped.error().message;
  std::optional<Connection> posts(std::move(*wrapped));
  EXPECT_TRUE(EndedInChild(posts));
  EXPECT_EQ(PQresultStatus(posts->Exec("SELECT 1").get()), PGRES_TUPLES_OK) << posts->ErrorMessage();
}

}  // namespace
}  // namespace antipode::postgresql::tests
