// A store in two regions for the tests: one lab of a primary and two hot standbys for the whole program, prepared as an
// operator does it (`antipode init … --run`), and connections to its servers.
#ifndef ANTIPODE_POSTGRESQL_TESTS_REGIONS_H_
#define ANTIPODE_POSTGRESQL_TESTS_REGIONS_H_

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/postgresql.h"
#include "antipode/scope.h"
#include "antipode/testing/isolated.h"
#include "lab/lab.h"

namespace antipode::postgresql::tests {

inline constexpr char kStore[] = "blog-posts";
using namespace std::chrono_literals;

// Runs a command line; its output. Throws where it fails.
std::string RunCommand(const std::vector<std::string>& words);

// Waits for a condition, with a deadline.
void Until(const std::function<bool()>& condition, std::chrono::seconds patience = 60s);

// A lab whose database is prepared, with the table `posts (key, value)`.
class Regions {
 public:
  explicit Regions(int replicas = 2);

  // The lab that tests share which leave it as it is.
  static Regions& Shared();

  lab::Lab& lab() { return lab_; }
  std::string Url(const std::string& server, const std::string& user = "app") const;

  // The servers anew, after a test that spoils them.
  static void RenewShared();

  // A plain connection.
  PGconn* Plain(const std::string& server, const std::string& user = "app") const;
  // One that is wrapped; a barrier means the standbys.
  Connection Wrapped(const std::string& server, const std::function<void(Options&)>& change = {},
                     const std::string& name = kStore) const;
  // Runs a statement at a server without Antipode; the first value of its first row.
  std::string Ask(const std::string& server, const std::string& statement, const std::string& user = "app") const;
  // Whether a server has that post, without Antipode.
  bool Shows(const std::string& server, const std::string& key) const;
  std::vector<std::string> standbys() const;

 private:
  lab::Lab lab_;
  int replicas_;
};

// Throws where a statement failed: for what a test only needs.
void Must(const Reply& reply);

// Of the tests: an isolated Antipode, an empty table, a scope.
class OnServers : public ::testing::Test {
 protected:
  OnServers();

  Regions& regions_ = Regions::Shared();
  testing::Isolated isolated_;
};

// The one position of a lineage for the store; fails the test where there is another number of them.
Ordered PositionIn(const Lineage& lineage);

// Whether a barrier on that passes, and the standbys show the post then.
::testing::AssertionResult ComesTo(Regions& regions, const Lineage& lineage, const std::string& key);

// A barrier on the store that gives an answer by its deadline.
BarrierResult LookAt(const Lineage& lineage, std::chrono::milliseconds timeout = 10s);

}  // namespace antipode::postgresql::tests

#endif  // ANTIPODE_POSTGRESQL_TESTS_REGIONS_H_
