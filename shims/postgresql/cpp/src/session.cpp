#include "session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace antipode::postgresql {
namespace {

Row RowOf(const PGresult* result, int row) {
  Row values;
  for (int column = 0; column < PQnfields(result); ++column) {
    if (PQgetisnull(result, row, column) != 0) {
      values.emplace_back();
    } else {
      values.emplace_back(
          std::string(PQgetvalue(result, row, column), static_cast<std::size_t>(PQgetlength(result, row, column))));
    }
  }
  return values;
}

// What an error of this state keeps from being proved (BAR-59): a right, or what `antipode init` makes.
UnprovenKind KindOf(std::string_view state) {
  constexpr std::string_view kOfRights[] = {"3F000", "42501", "42883", "42P01"};
  const bool is_right = std::find(std::begin(kOfRights), std::end(kOfRights), state) != std::end(kOfRights);
  return is_right ? UnprovenKind::kRight : UnprovenKind::kOther;
}

}  // namespace

std::string FirstLine(const char* words) {
  std::string line(words == nullptr ? "" : words);
  line.erase(0, std::min(line.find_first_not_of(" \n"), line.size()));
  return line.substr(0, line.find('\n'));
}

Session::Session(const Target& target, Timeout timeout, const std::map<std::string, std::string>& more)
    : timeout_(timeout), process_(getpid()) {
  std::map<std::string, std::string> words = target.words;
  words["application_name"] = "antipode";
  for (const auto& [key, value] : more) words[key] = value;
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : words) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  const TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  connection_.reset(PQconnectStartParams(keys.data(), values.data(), 0));
  if (connection_ == nullptr) throw UnreachableError{"libpq has no memory for a connection"};
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (PQstatus(connection_.get()) != CONNECTION_BAD) {
    if (state == PGRES_POLLING_OK || state == PGRES_POLLING_FAILED) break;
    Await(state == PGRES_POLLING_WRITING, deadline, "connection");
    state = PQconnectPoll(connection_.get());
  }
  if (state != PGRES_POLLING_OK) throw UnreachableError{FirstLine(PQerrorMessage(connection_.get()))};
  PQsetnonblocking(connection_.get(), 1);
}

Session::~Session() {
  if (getpid() == process_) return;
  const PGconn* const parents = connection_.release();
  close(PQsocket(parents));
}

// Waits until the socket can be read, or also written where `writes`.
void Session::Await(bool writes, TimePoint deadline, const char* what) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count() + 1;
    pollfd waited{PQsocket(connection_.get()), static_cast<short>(writes ? POLLOUT | POLLIN : POLLIN), 0};
    if (left > 1 || deadline > std::chrono::steady_clock::now()) {
      const int ready = poll(&waited, 1, static_cast<int>(std::clamp<long long>(left, 1, 1 << 30)));
      if (ready > 0) return;
      if (ready < 0 && errno != EINTR) throw UnreachableError{std::string("no ") + what + ": poll failed"};
      if (ready < 0) continue;
    }
    char words[64];
    std::snprintf(words, sizeof words, "no %s within %.1f s", what, std::chrono::duration<double>(timeout_).count());
    throw UnreachableError{words};
  }
}

void Session::Sent(int done) const {
  if (done == 0) throw UnreachableError{FirstLine(PQerrorMessage(connection_.get()))};
}

Rows Session::Run(const std::string& statement) {
  Sent(PQsendQuery(connection_.get(), statement.c_str()));
  return Finish();
}

void Session::Prepare(const char* name, const char* statement) {
  Sent(PQsendPrepare(connection_.get(), name, statement, 0, nullptr));
  Finish();
}

Row Session::Prepared(const char* name) {
  Sent(PQsendQueryPrepared(connection_.get(), name, 0, nullptr, nullptr, nullptr, 0));
  const Rows rows = Finish();
  if (rows.empty()) throw RefusedError{"no answer"};
  return rows.front();
}

Row Session::One(const std::string& statement) {
  const Rows rows = Run(statement);
  if (rows.empty()) throw RefusedError{"no answer"};
  return rows.front();
}

Rows Session::Finish() {
  Rows rows;
  PGconn* const connection = connection_.get();
  const TimePoint deadline = std::chrono::steady_clock::now() + timeout_;
  std::string error;
  UnprovenKind kind = UnprovenKind::kOther;
  bool lost = false;
  for (;;) {
    int unsent = PQflush(connection);
    while (unsent == 1 || PQisBusy(connection) != 0) {
      Await(unsent == 1, deadline, "answer");
      if (PQconsumeInput(connection) == 0) throw UnreachableError{FirstLine(PQerrorMessage(connection))};
      if (unsent == 1) unsent = PQflush(connection);
    }
    const OwnResult result(PQgetResult(connection));
    if (result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      rows.clear();
      for (int row = 0; row < PQntuples(result.get()); ++row) rows.push_back(RowOf(result.get(), row));
      continue;
    }
    const char* const severity = PQresultErrorField(result.get(), PG_DIAG_SEVERITY_NONLOCALIZED);
    lost = lost || severity == nullptr || std::string(severity) != "ERROR";
    if (error.empty()) {
      const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
      kind = KindOf(state == nullptr ? "" : state);
      error = FirstLine(PQresultErrorMessage(result.get()));
    }
    if (error.empty()) error = "an answer that is none";
    if (PQstatus(connection) == CONNECTION_BAD) break;
  }
  if (PQstatus(connection) == CONNECTION_BAD || lost) {
    throw UnreachableError{error.empty() ? FirstLine(PQerrorMessage(connection)) : error};
  }
  if (!error.empty()) throw RefusedError{error, kind};
  return rows;
}

}  // namespace antipode::postgresql
