// How to reach a PostgreSQL server beside the application's own connections: with its host, user, password and TLS.
#ifndef ANTIPODE_POSTGRESQL_SRC_TARGETS_H_
#define ANTIPODE_POSTGRESQL_SRC_TARGETS_H_

#include <libpq-fe.h>

#include <any>
#include <map>
#include <string>

#include "antipode/result.h"

namespace antipode::postgresql {

// One server and database, as libpq reaches it.
struct Target {
  std::string address;                       // its name for people and for telling servers apart: no credentials
  std::map<std::string, std::string> words;  // libpq's own options; holds the password
  bool several = false;                      // it names several servers, of which libpq takes one
};

// The server behind a URL or connection string, and what the environment says now where that says nothing;
// kConfiguration where it is none, without its credentials.
Result<Target> TargetOf(const std::string& text);

// The very server that an open connection has reached, of several in its connection string.
Target TargetOf(PGconn* connection);

// What an application names a server by: a Target, or a URL or connection string.
Result<Target> TargetOf(const std::any& what);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_TARGETS_H_
