#include "noting.h"

#include <utility>

#include "antipode/scope.h"

namespace antipode::postgresql {

std::unique_ptr<NotedStatement> NotedStatement::Begin(const Binding& binding, const Statement& statement) {
  if (!binding.notes || !statement.noted) return nullptr;
  auto noted = history::NoteRead(*binding.store, CurrentScope());
  if (noted == nullptr) return nullptr;
  return std::unique_ptr<NotedStatement>(new NotedStatement(std::move(noted)));
}

void NotedStatement::Came(const PGresult* result, const std::optional<WriteId>& covers) noexcept {
  switch (PQresultStatus(result)) {
    case PGRES_FATAL_ERROR:  // none at all, too
    case PGRES_BAD_RESPONSE:
      return;
    default:
      Over(covers);
  }
}

void NotedStatement::Over(const std::optional<WriteId>& covers) noexcept { noted_->Over(seen_, covers); }

}  // namespace antipode::postgresql
