// What a recorded history is told of statements: that they read, and no more (spec HIST-36).
#ifndef ANTIPODE_POSTGRESQL_SRC_NOTING_H_
#define ANTIPODE_POSTGRESQL_SRC_NOTING_H_

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "antipode/shim/history.h"
#include "antipode/write_id.h"
#include "binding.h"
#include "statements.h"

namespace antipode::postgresql {

// One statement that reads, from before it is sent; where nobody says that something came, nothing is told of it.
class NotedStatement {
 public:
  // Null where no history is recorded, outside of scopes, and where it reads no data.
  static std::unique_ptr<NotedStatement> Begin(const Binding& binding, const Statement& statement);

  // The application is given this result. What has an error has read nothing.
  void Came(const PGresult* result, const std::optional<WriteId>& covers = std::nullopt) noexcept;

  // Something came, or may have. `covers`: the position that goes into lineages with it. The first word holds.
  void Over(const std::optional<WriteId>& covers = std::nullopt) noexcept;

 private:
  explicit NotedStatement(std::unique_ptr<history::NotedRead> noted) : noted_(std::move(noted)) {}

  const std::unique_ptr<history::NotedRead> noted_;
  const std::vector<history::Seen> seen_ = std::vector<history::Seen>(1);  // nobody knows what
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_NOTING_H_
