#include "packets.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "positions.h"

namespace antipode::postgresql {
namespace {

constexpr std::uint64_t kPage = 8192;
constexpr std::uint64_t kHeader = 24;
constexpr std::uint64_t kLongHeader = 40;  // of the first page of a segment

bool HasState(const Results& results, std::string_view state) {
  return std::any_of(results.begin(), results.end(), [state](const OwnResult& each) {
    const char* const own = PQresultErrorField(each.get(), PG_DIAG_SQLSTATE);
    return own != nullptr && own == state;
  });
}

// Waits for libpq to have its next result, or to find the connection broken; false at the deadline.
bool Awaits(PGconn* connection, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const bool is_full = PQflush(connection) == 1;
    if (!is_full && PQisBusy(connection) == 0) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{PQsocket(connection), static_cast<short>(is_full ? POLLIN | POLLOUT : POLLIN), 0};
    if (left.count() <= 0) return false;
    if (poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30))) > 0 &&
        PQconsumeInput(connection) == 0) {
      return true;
    }
  }
}

// libpq's next result. With a deadline that has passed the connection is broken first, since its answer is still to
// come.
PGresult* Next(PGconn* connection, Deadline deadline) {
  if (deadline && !Awaits(connection, *deadline)) shutdown(PQsocket(connection), SHUT_RDWR);
  return PQgetResult(connection);
}

// What comes up to the end of a group: errors of its commit (a deferred constraint). Nothing where the end did not
// come.
std::optional<Results> EndOf(PGconn* connection, Deadline deadline) {
  Results errors;
  for (int empty = 0; empty < 3 && PQstatus(connection) == CONNECTION_OK;) {
    PGresult* const result = Next(connection, deadline);
    if (result == nullptr) {
      ++empty;  // behind an error
      continue;
    }
    OwnResult own(result);
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) return errors;
    errors.push_back(std::move(own));
  }
  return std::nullopt;
}

}  // namespace

bool Place::Certain(std::uint64_t segment) const {
  return position % kPage != 0 || position == RecordEnd(inserted, segment);
}

std::string_view ValueOf(const PGresult* result, int column) {
  if (PQntuples(result) == 0 || column >= PQnfields(result) || PQgetisnull(result, 0, column) != 0) return {};
  return {PQgetvalue(result, 0, column), static_cast<std::size_t>(PQgetlength(result, 0, column))};
}

std::optional<Place> PlaceOf(const Results& results) {
  if (results.empty() || PQresultStatus(results.back().get()) != PGRES_TUPLES_OK) return std::nullopt;
  const PGresult* const result = results.back().get();
  const std::string_view name = ValueOf(result, 0);
  const auto flushed = NumberOf(ValueOf(result, 1));
  const auto inserted = NumberOf(ValueOf(result, 2));
  if (name.size() < 8 || !flushed || !inserted) return std::nullopt;
  Place place{0, *flushed, *inserted};
  if (std::from_chars(name.data(), name.data() + 8, place.timeline, 16).ptr != name.data() + 8) return std::nullopt;
  return place;
}

std::uint64_t RecordEnd(std::uint64_t inserted, std::uint64_t segment) {
  if (segment != 0 && inserted % segment == kLongHeader) return inserted - kLongHeader;
  return inserted % kPage == kHeader ? inserted - kHeader : inserted;
}

std::string RefusalOf(const Results& results) {
  for (const OwnResult& each : results) {
    if (PQresultStatus(each.get()) != PGRES_FATAL_ERROR) continue;
    std::string words = FirstLine(PQresultErrorMessage(each.get()));
    return words.empty() ? "an error without words" : words;
  }
  return {};
}

bool IsUnknownStatement(const Results& results) { return HasState(results, "26000"); }

bool IsCancelled(const Results& results) { return HasState(results, "57014"); }

bool IsPrepared(const Results& results) { return RefusalOf(results).empty() || HasState(results, "42P05"); }

bool EndsConnection(const PGresult* result) {
  if (PQresultStatus(result) != PGRES_FATAL_ERROR) return false;
  const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == nullptr || std::string_view(severity) != "ERROR";
}

Results AllOf(PGconn* connection, Deadline deadline) {
  Results results;
  while (PGresult* const result = Next(connection, deadline)) {
    results.emplace_back(result);
    if (PQstatus(connection) != CONNECTION_OK) break;
  }
  return results;
}

Results Simple(PGconn* connection, const std::string& text, Deadline deadline) {
  return PQsendQuery(connection, text.c_str()) == 0 ? Results() : AllOf(connection, deadline);
}

Answers Piped(PGconn* connection, const std::vector<std::vector<Send>>& groups, Deadline deadline) {
  Answers found;
  const bool entered = PQpipelineStatus(connection) == PQ_PIPELINE_OFF;
  if (entered && PQenterPipelineMode(connection) == 0) return found;
  std::vector<std::size_t> sent;  // commands a group
  bool whole = true;
  for (auto group = groups.begin(); group != groups.end() && whole; ++group) {
    std::size_t count = 0;
    for (const Send& send : *group) {
      whole = whole && send() != 0;
      count += whole ? 1 : 0;
    }
    if (count > 0 && PQpipelineSync(connection) == 0) break;
    if (count > 0) sent.push_back(count);
  }
  for (const std::size_t count : sent) {
    for (std::size_t command = 0; command < count; ++command) found.commands.push_back(AllOf(connection, deadline));
    std::optional<Results> end = EndOf(connection, deadline);
    if (!end) break;
    found.ends.push_back(*std::move(end));
  }
  if (entered) PQexitPipelineMode(connection);
  return found;
}

Send Asked(PGconn* connection, const char* text) {
  return [connection, text] { return PQsendQueryParams(connection, text, 0, nullptr, nullptr, nullptr, nullptr, 0); };
}

}  // namespace antipode::postgresql
