#include "repeating.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "antipode/settings.h"
#include "repeatable.h"
#include "session.h"

namespace antipode::postgresql {
namespace {

using Clock = std::chrono::steady_clock;

// A statement and its parameters together: what is longer is not copied, and not repeated.
constexpr std::size_t kMostSent = std::size_t{64} << 10U;

// A statement with its parameters, when the application's are gone.
struct Copied {
  std::string text;
  std::vector<Oid> types;
  std::vector<std::optional<std::string>> values;
  std::vector<int> lengths;
  std::vector<int> formats;

  // Nothing where it is too long, or libpq will refuse it.
  static std::optional<Copied> Of(const Sent& sent) {
    if (sent.count < 0 || sent.count > Sent::kMostParameters) return std::nullopt;
    Copied copied;
    copied.text = sent.text;
    std::size_t size = copied.text.size();
    const auto count = static_cast<std::size_t>(sent.count);
    for (std::size_t place = 0; place < count; ++place) {
      const char* const value = sent.values == nullptr ? nullptr : sent.values[place];
      const bool binary = sent.formats != nullptr && sent.formats[place] != 0;
      const bool typed = sent.types != nullptr && place < static_cast<std::size_t>(sent.typed);
      copied.types.push_back(typed ? sent.types[place] : 0);  // the server infers it
      copied.formats.push_back(binary ? 1 : 0);
      if (value == nullptr) {
        copied.values.emplace_back();
      } else if (!binary) {
        copied.values.emplace_back(std::string(value, strnlen(value, kMostSent)));
      } else if (sent.lengths == nullptr || sent.lengths[place] < 0) {
        return std::nullopt;
      } else {
        copied.values.emplace_back(
            std::string(value, std::min(kMostSent, static_cast<std::size_t>(sent.lengths[place]))));
      }
      const std::size_t length = copied.values.back() ? copied.values.back()->size() : 0;
      copied.lengths.push_back(static_cast<int>(length));
      size += length;
      if (size >= kMostSent) return std::nullopt;
    }
    return size < kMostSent ? std::optional(std::move(copied)) : std::nullopt;
  }

  int Send(PGconn* connection) const {
    std::vector<const char*> pointers;
    for (const auto& value : values) pointers.push_back(value ? value->c_str() : nullptr);
    return PQsendQueryParams(connection, text.c_str(), static_cast<int>(values.size()), types.data(), pointers.data(),
                             lengths.data(), formats.data(), 0);
  }
};

// Which server it is, behind an address that may be that of several; and a transaction that changes nothing.
constexpr char kBegin[] =
    "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; SET LOCAL statement_timeout = %lld;"
    " SELECT pg_postmaster_start_time()::text, inet_server_addr()::text, inet_server_port()::text";

// The reads of one statement, one after the other, by one thread.
class OwnReads {
 public:
  OwnReads(std::shared_ptr<const Target> target, Copied copied, std::chrono::nanoseconds timeout)
      : target_(std::move(target)), copied_(std::move(copied)), timeout_(timeout) {}

  // Reads on a connection that ends with this call, which takes `timeout` at most. Nothing where the statement may not
  // be repeated, and where it failed, was too slow, has too many rows, or is answered by another server than the first
  // time.
  std::optional<std::string> Next() {
    if (!may_) may_ = IsRepeatable(copied_.text);
    if (!*may_) return std::nullopt;
    try {
      return Read();
    } catch (const Unreachable&) {
      return std::nullopt;
    } catch (const Refused&) {
      return std::nullopt;
    }
  }

 private:
  std::optional<std::string> Read() {
    const Clock::time_point deadline = Clock::now() + timeout_;
    const auto left = [&] {
      return std::max<std::chrono::nanoseconds>(deadline - Clock::now(), std::chrono::milliseconds(1));
    };
    Session session(*target_, timeout_);
    session.set_timeout(left());
    char begin[sizeof kBegin + 32];
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(left()).count();
    std::snprintf(begin, sizeof begin, kBegin, static_cast<long long>(limit));
    Row server = session.One(begin);
    if (!server_) server_ = server;
    if (server != *server_) return std::nullopt;
    session.set_timeout(left());
    RowOctets rows;
    const auto send = [&](PGconn* own) { return copied_.Send(own); };
    if (!session.Each(send, [&](const PGresult* row) { return rows.Add(row); })) return std::nullopt;
    return rows.Octets();
  }

  const std::shared_ptr<const Target> target_;
  const Copied copied_;
  const std::chrono::nanoseconds timeout_;
  std::optional<bool> may_;    // whether its text may be repeated
  std::optional<Row> server_;  // which one was read from at first
};

}  // namespace

bool RowOctets::Add(const PGresult* result) {
  for (int row = 0; row < PQntuples(result); ++row) {
    std::string octets = "(";
    for (int column = 0; column < PQnfields(result); ++column) {
      if (PQgetisnull(result, row, column) != 0) {
        octets += '-';
        continue;
      }
      const auto length = static_cast<std::size_t>(PQgetlength(result, row, column));
      if (length > FollowedRead::kMostOctets) return false;
      octets.append(std::to_string(length)).append(":").append(PQgetvalue(result, row, column), length);
    }
    size_ += octets.size();
    if (size_ > FollowedRead::kMostOctets) return false;
    rows_.push_back(std::move(octets));
  }
  return true;
}

std::string RowOctets::Octets() {
  std::sort(rows_.begin(), rows_.end());
  std::string octets;
  octets.reserve(size_);
  for (const std::string& row : rows_) octets += row;
  return octets;
}

void Repeating::Says(Kind kind, const char* text) noexcept {
  if (changed_ || text == nullptr || (kind != Kind::kSession && !IsUnsure(kind))) return;
  try {
    changed_ = ChangesSession(text);
  } catch (...) {  // never into the application: where memory is short, nothing is repeated
    changed_ = true;
  }
}

void Repeating::Reconnected() noexcept {
  changed_ = false;
  target_.reset();
}

// As the application's own session began: its server, and what it asked for when it connected.
std::shared_ptr<const Target> Repeating::OwnTarget() {
  if (!target_) target_ = std::make_shared<const Target>(SameAs(connection_));
  return target_;
}

FollowedRead::Came Repeating::Of(const Sent& sent, std::chrono::nanoseconds timeout) noexcept {
  FollowedRead::Came came;
  try {
    if (changed_ || sent.text == nullptr || !CurrentSettings()->repeat_reads) return came;
    if (auto copied = Copied::Of(sent)) {
      came.repeat = [reads = std::make_shared<OwnReads>(OwnTarget(), std::move(*copied), timeout)] {
        return reads->Next();
      };
    }
  } catch (...) {  // never into the application: nothing is repeated
  }
  return came;
}

}  // namespace antipode::postgresql
