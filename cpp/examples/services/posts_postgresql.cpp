// Posts in PostgreSQL: a row a post; each statement commits by itself.
#include <antipode/postgresql.h>

#include <array>
#include <memory>
#include <utility>

#include "posts.h"

namespace services {
namespace {

constexpr Oid kText = 25;
constexpr Oid kBytea = 17;
constexpr int kBinary = 1;
constexpr const char* kInsert = "INSERT INTO posts (key, body) VALUES ($1, $2)";
constexpr const char* kSelect = "SELECT body FROM posts WHERE key = $1";

using Plain = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using PlainResult = std::unique_ptr<PGresult, decltype(&PQclear)>;

// The first row's value, as octets; nothing where there is no row.
std::optional<std::string> Value(const PGresult* result, const char* words) {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK) return std::nullopt;
  if (status != PGRES_TUPLES_OK) throw Failure(std::string("PostgreSQL: ") + words);
  if (PQntuples(result) == 0) return std::nullopt;
  return std::string(PQgetvalue(result, 0, 0), static_cast<std::size_t>(PQgetlength(result, 0, 0)));
}

// The two statements; how they are sent is the subclasses' business.
class Statements : public PostsConnection {
 public:
  void Write(const std::string& key, const std::string& body) override {
    const std::array types{kText, kBytea};
    const std::array values{key.data(), body.data()};
    const std::array lengths{static_cast<int>(key.size()), static_cast<int>(body.size())};
    const std::array formats{kBinary, kBinary};
    Send(kInsert, 2, types.data(), values.data(), lengths.data(), formats.data());
  }

  std::optional<std::string> Read(const std::string& key) override {
    const char* value = key.data();
    const int length = static_cast<int>(key.size());
    return Send(kSelect, 1, &kText, &value, &length, &kBinary);
  }

 private:
  virtual std::optional<std::string> Send(const char* command, int count, const Oid* types, const char* const* values,
                                          const int* lengths, const int* formats) = 0;
};

class PlainPostgresql : public Statements {
 public:
  explicit PlainPostgresql(Plain connection) : connection_(std::move(connection)) {}

 private:
  std::optional<std::string> Send(const char* command, int count, const Oid* types, const char* const* values,
                                  const int* lengths, const int* formats) override {
    const PlainResult result(
        PQexecParams(connection_.get(), command, count, types, values, lengths, formats, kBinary), PQclear);
    return Value(result.get(), PQerrorMessage(connection_.get()));
  }

  const Plain connection_;
};

class WrappedPostgresql : public Statements {
 public:
  explicit WrappedPostgresql(antipode::postgresql::Connection connection) : connection_(std::move(connection)) {}

 private:
  std::optional<std::string> Send(const char* command, int count, const Oid* types, const char* const* values,
                                  const int* lengths, const int* formats) override {
    const auto reply = connection_.ExecParams(command, count, types, values, lengths, formats, kBinary);
    if (reply.error() != nullptr) throw Failure(reply.error()->message);  // the read waited in vain
    return Value(reply.get(), connection_.ErrorMessage());
  }

  antipode::postgresql::Connection connection_;
};

}  // namespace

std::unique_ptr<PostsConnection> ConnectPostgresql(const Setup& setup, const std::string& url) {
  Plain connection(PQconnectdb(url.c_str()), PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw Failure(std::string("PostgreSQL: ") + PQerrorMessage(connection.get()));
  }
  if (!setup.antipode) return std::make_unique<PlainPostgresql>(std::move(connection));
  auto wrapped = antipode::postgresql::Wrap(
      connection.release(), antipode::StoreOptions(kPosts).WaitOnRead(setup.wait_on_read()).Timeout(setup.timeout));
  if (!wrapped) throw Failure(wrapped.error().message);
  return std::make_unique<WrappedPostgresql>(*std::move(wrapped));
}

void RegisterPostgresql(const antipode::StoreOptions& options) {
  if (const auto done = antipode::postgresql::Register(options); !done) throw Failure(done.error().message);
}

}  // namespace services
