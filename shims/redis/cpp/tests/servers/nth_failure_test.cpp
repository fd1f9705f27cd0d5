// The n-th call of a function of the system fails: no false pass, no hang, whole behind it (BAR-61). Our engine makes
// eventfds, threads where a process waits first, and sockets; every question polls and takes memory.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>

#include "region.h"

namespace antipode::redis {
namespace {

struct Row {
  std::string function;
  std::string kind;
  std::string form;
  std::string start;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.function << " " << row.kind << " " << row.form << " " << row.start;
}

class NthFailureTest : public PostsTest, public ::testing::WithParamInterface<Row> {};

TEST_P(NthFailureTest, NeverAFalsePassNorAHangAndWholeBehindIt) {
  const Row& row = GetParam();
  std::string numbers = row.kind == "on" ? "1 2 3" : "1 2 3 4 5 8 12 20 35 60 120 200";
  std::string limit = "100";
  if (std::getenv("NTH") != nullptr) {  // each of the first so many (scripts/nth-cpp)
    numbers.clear();
    for (int number = 1; number <= std::atoi(std::getenv("NTH")); ++number) numbers += std::to_string(number) + " ";
    limit = "7200";
  }
  std::string library = Python("from antipode_lab.call_faults import library; print(library())");
  const std::string command = "LD_PRELOAD=" + library + " timeout " + limit + " " ANTIPODE_LACKING " " +
                              std::to_string(TheLab().server("redis", "a").port) + " " +
                              std::to_string(TheLab().server("redis", "b1").port) + " " + row.function + " " +
                              row.kind + " " + row.form + " " + row.start + " " + numbers + " 2>&1";
  std::string said;
  FILE* const pipe = popen(command.c_str(), "r");
  char octets[4096];
  while (const std::size_t size = fread(octets, 1, sizeof octets, pipe)) said.append(octets, size);
  const int status = pclose(pipe);
  ASSERT_TRUE(WIFEXITED(status)) << said;
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
  EXPECT_NE(said.find("whole "), std::string::npos) << said;
  EXPECT_EQ(said.find("whole 0"), std::string::npos) << "no call failed: " << said;
}

INSTANTIATE_TEST_SUITE_P(
    Functions, NthFailureTest,
    ::testing::Values(Row{"socket", "once", "blocking", "warm"}, Row{"socket", "on", "callback", "warm"},
                      Row{"connect", "burst", "callback", "warm"}, Row{"connect", "on", "blocking", "warm"},
                      Row{"poll", "once", "callback", "warm"}, Row{"poll", "on", "blocking", "warm"},
                      Row{"eventfd", "on", "blocking", "cold"}, Row{"thread", "once", "blocking", "cold"},
                      Row{"thread", "on", "callback", "cold"}, Row{"memory", "once", "callback", "warm"},
                      Row{"memory", "burst", "blocking", "warm"}));

}  // namespace
}  // namespace antipode::redis
