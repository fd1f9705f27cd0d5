// How to reach a Redis server beside the application's own connection.
#ifndef ANTIPODE_REDIS_TARGET_H_
#define ANTIPODE_REDIS_TARGET_H_

#include <hiredis/hiredis.h>

#include <any>
#include <optional>
#include <string>
#include <string_view>

#include "antipode/result.h"

namespace antipode::redis {

struct Target {
  std::string host;
  int port = 6379;
  std::string path;  // of a Unix socket; then there is no host
  int database = 0;
  std::string user;
  std::string password;

  // Its name for people and for telling servers apart: no credentials.
  std::string Address() const;

  // `redis://[[user]:password@]host[:port][/db]` or `unix://[[user]:password@]/path[?db=n]`.
  //
  // Fails (kConfiguration) without the credentials in its words. `rediss:` is refused: hiredis 0.14 speaks no TLS.
  static Result<Target> Parse(std::string_view url);

  // Where a connection leads: its peer where its words are another server's by now (BAR-68), else its words. A name is
  // not resolved; empty where it says nothing.
  static Target ReachedServer(const redisContext& context);
  // Leads to that place from now on, with its own database and credentials.
  void LeadTo(const Target& place);

  // That of a URL or of a `Target`.
  static Result<Target> Of(const std::any& given);
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_TARGET_H_
