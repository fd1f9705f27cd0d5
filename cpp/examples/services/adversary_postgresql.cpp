// libpq, as the adversary plays it; the tables and routines are the Python stage's.
#include <antipode/postgresql.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adversary.h"
#include "setup.h"

namespace services {
namespace {

using antipode::postgresql::Connection;
using antipode::postgresql::Reply;

constexpr const char* kParameters = "INSERT INTO posts (key, value) VALUES ($1, 'v')";
constexpr const char* kText = "INSERT INTO posts (key, value) VALUES ('{}', 'v')";
constexpr const char* kSelect = "SELECT key FROM posts WHERE key = '{}'";
constexpr const char* kSelectParameters = "SELECT key FROM posts WHERE key = $1";
constexpr const char* kCopy = "COPY posts (key, value) FROM STDIN";

// libpq itself, with the words of the wrapped connection.
class Plain {
 public:
  explicit Plain(PGconn* connection) : connection_(connection, PQfinish) {}

  PGconn* get() const { return connection_.get(); }
  Reply Exec(const char* query) { return Reply(PQexec(get(), query)); }
  Reply ExecParams(const char* command, int count, const Oid* types, const char* const* values, const int* lengths,
                   const int* formats, int result_format) {
    return Reply(PQexecParams(get(), command, count, types, values, lengths, formats, result_format));
  }
  Reply Prepare(const char* name, const char* query, int count, const Oid* types) {
    return Reply(PQprepare(get(), name, query, count, types));
  }
  Reply ExecPrepared(const char* name, int count, const char* const* values, const int* lengths, const int* formats,
                     int result_format) {
    return Reply(PQexecPrepared(get(), name, count, values, lengths, formats, result_format));
  }
  int SendQuery(const char* query) { return PQsendQuery(get(), query); }
  int SendQueryParams(const char* command, int count, const Oid* types, const char* const* values, const int* lengths,
                      const int* formats, int result_format) {
    return PQsendQueryParams(get(), command, count, types, values, lengths, formats, result_format);
  }
  int SendPrepare(const char* name, const char* query, int count, const Oid* types) {
    return PQsendPrepare(get(), name, query, count, types);
  }
  int SendQueryPrepared(const char* name, int count, const char* const* values, const int* lengths,
                        const int* formats, int result_format) {
    return PQsendQueryPrepared(get(), name, count, values, lengths, formats, result_format);
  }
  int SetSingleRowMode() { return PQsetSingleRowMode(get()); }
  Reply GetResult() { return Reply(PQgetResult(get())); }
  int EnterPipelineMode() { return PQenterPipelineMode(get()); }
  int ExitPipelineMode() { return PQexitPipelineMode(get()); }
  int PipelineSync() { return PQpipelineSync(get()); }
  int SendFlushRequest() { return PQsendFlushRequest(get()); }
  int Flush() { return PQflush(get()); }
  PGpipelineStatus PipelineStatus() const { return PQpipelineStatus(get()); }
  int PutCopyData(const char* buffer, int octets) { return PQputCopyData(get(), buffer, octets); }
  int PutCopyEnd(const char* error = nullptr) { return PQputCopyEnd(get(), error); }
  int GetCopyData(char** buffer, int asynchronous) { return PQgetCopyData(get(), buffer, asynchronous); }
  const char* ErrorMessage() const { return PQerrorMessage(get()); }
  const antipode::Error* LastError() const { return nullptr; }
  void Reset() { PQreset(get()); }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

using Client = EitherClient<Connection, Plain>;

std::string With(const std::string& text, const std::string& row) {
  std::string whole = text;
  for (std::size_t at = whole.find("{}"); at != std::string::npos; at = whole.find("{}")) whole.replace(at, 2, row);
  return whole;
}

std::string Told(const Reply& reply) {
  if (reply.error() != nullptr) throw Raised{"antipode", reply.error()->message};
  const PGresult* result = reply.get();
  if (result == nullptr) return "nothing";
  std::string words = PQresStatus(PQresultStatus(result));
  const std::string error = PQresultErrorMessage(result);
  const char* first = PQnfields(result) > 0 ? PQfname(result, 0) : nullptr;  // COPY's columns have no names
  const bool explains = first != nullptr && first == std::string("QUERY PLAN");
  if (!error.empty()) return words + " " + error;
  words += " " + std::string(PQcmdStatus(const_cast<PGresult*>(result)));
  for (int row = 0; row < PQntuples(result) && !explains; ++row) {
    words += std::string(" ") + (PQgetisnull(result, row, 0) != 0 ? "-" : PQgetvalue(result, row, 0));
  }
  return words;
}

// Whether something was sent; else the words of the error.
template <class C>
std::string Sent(C& connection, int sent) {
  if (sent != 0) return "sent";
  if (connection.LastError() != nullptr) throw Raised{"antipode", connection.LastError()->message};
  return std::string("not sent: ") + connection.ErrorMessage();
}

// All results until the command is over, or the pipeline's synchronisation point.
template <class C>
std::string Drain(C& connection) {
  std::string words;
  for (int nothing = 0; nothing < 2;) {
    const Reply reply = connection.GetResult();
    const bool is_over = reply.get() == nullptr && reply.error() == nullptr;
    nothing = is_over ? nothing + 1 : 0;
    if (is_over && connection.PipelineStatus() == PQ_PIPELINE_OFF) break;
    if (is_over) continue;
    words += Told(reply) + "; ";
    if (reply.status() == PGRES_PIPELINE_SYNC) break;
    if (reply.status() == PGRES_COPY_IN || reply.status() == PGRES_COPY_OUT) break;
  }
  return words;
}

Way Writing(const std::string& text) {
  return Client::By([text](auto& each, const std::string& row) { return Told(each.Exec(With(text, row).c_str())); });
}

// Results of what was sent; in pipeline mode they come later.
template <class C>
std::string Ended(C& connection, const std::string& sent) {
  return connection.PipelineStatus() != PQ_PIPELINE_OFF ? sent : sent + " " + Drain(connection);
}

template <class C>
int SendText(C& connection, const std::string& text) {
  return connection.SendQueryParams(text.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0);
}

template <class C>
std::string Copied(C& connection, const std::string& row, const char* error) {
  std::string words = Told(connection.Exec(kCopy));
  const std::string line = row + "\tc\n";
  words += std::to_string(connection.PutCopyData(line.data(), static_cast<int>(line.size())));
  words += std::to_string(connection.PutCopyEnd(error));
  return words + Drain(connection);
}

// A pipeline of these texts, each a part with a synchronisation point behind it where it is ";".
Way Pipeline(const std::vector<std::string>& texts) {
  return Client::By([texts](auto& each, const std::string& row) {
    std::string words = std::to_string(each.EnterPipelineMode());
    int points = 0;
    for (const std::string& text : texts) {
      points += text == ";" ? 1 : 0;
      words += text == ";" ? std::to_string(each.PipelineSync()) : Sent(each, SendText(each, With(text, row)));
    }
    for (; points > 0; --points) words += Drain(each);
    return words + std::to_string(each.ExitPipelineMode());
  });
}

Ways WritesOf() {
  const std::string text = kText;
  Ways ways{
      {"exec", Writing(text)},
      {"returning", Writing(text + " RETURNING key")},
      {"with", Writing("WITH x AS (" + text + " RETURNING key) SELECT * FROM x")},
      {"explain analyze", Writing("EXPLAIN ANALYZE " + text)},
      {"function", Writing("SELECT book('{}')")},
      {"function not in ASCII", Writing("SELECT \"записать\"('{}')")},
      {"function by a harmless name", Writing("SELECT replace(1, '{}')")},
      {"function in a condition", Writing("SELECT 1 WHERE book('{}') = ''")},
      {"function in values", Writing("VALUES (book('{}'))")},
      {"trigger", Writing("INSERT INTO inbox VALUES ('{}')")},
      {"do", Writing("DO $x$ BEGIN " + text + "; END $x$")},
      {"do that commits", Writing("DO $x$ BEGIN " + text + "; COMMIT; END $x$")},
      {"do that commits and fails", Writing("DO $x$ BEGIN " + text + "; COMMIT; PERFORM 1/0; END $x$")},
      {"procedure that commits", Writing("CALL put('{}')")},
      {"text of two", Writing(text + "; SELECT 1")},
      {"text that commits", Writing(text + "; COMMIT")},
      {"text that commits first", Writing("COMMIT; " + text)},
      {"text that begins", Writing("BEGIN; " + text)},
      {"text of transactions", Writing("BEGIN; " + text + "; COMMIT; BEGIN")},
      {"text that commits and fails", Writing("BEGIN; " + text + "; COMMIT; SELECT 1/0")},
      {"text that fails", Writing(text + "; SELECT 1/0")},
      {"comment", Writing("/* SELECT */ -- x\n " + text)},
      {"prepared by text", Writing("DEALLOCATE ALL; PREPARE put_row AS " + text + "; EXECUTE put_row")},
      {"pipeline", Pipeline({"SELECT 1", text, ";"})},
      {"pipeline that fails", Pipeline({text, "SELECT 1/0", ";"})},
      {"pipeline that fails later", Pipeline({text, ";", "SELECT 1/0", ";"})},
      {"pipeline of a transaction", Pipeline({"BEGIN", text, "COMMIT", "SELECT 1/0", ";"})},
      {"pipeline that begins", Pipeline({"BEGIN", text, ";"})},
  };
  ways["parameters"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.c_str()};
    return Told(each.ExecParams(kParameters, 1, nullptr, values, nullptr, nullptr, 0));
  });
  ways["binary"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.data()};
    const int lengths[] = {static_cast<int>(row.size())};
    const int formats[] = {1};
    return Told(each.ExecParams("SELECT book($1)", 1, nullptr, values, lengths, formats, 1));
  });
  for (const char* name : {"", "put_this"}) {
    ways[std::string("prepared ") + name] = Client::By([name](auto& each, const std::string& row) {
      const char* values[] = {row.c_str()};
      const std::string prepared = Told(each.Prepare(name, kParameters, 1, nullptr));
      return prepared + Told(each.ExecPrepared(name, 1, values, nullptr, nullptr, 0));
    });
  }
  ways["send"] = Client::By([](auto& each, const std::string& row) {
    return Ended(each, Sent(each, each.SendQuery(With(kText, row).c_str())));
  });
  ways["send several"] = Client::By([](auto& each, const std::string& row) {
    return Ended(each, Sent(each, each.SendQuery(With(std::string("BEGIN; ") + kText + "; COMMIT", row).c_str())));
  });
  ways["send and leave"] = Client::By([](auto& each, const std::string& row) {
    return Sent(each, each.SendQuery(With(kText, row).c_str()));
  });
  ways["send parameters"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.c_str()};
    return Ended(each, Sent(each, each.SendQueryParams(kParameters, 1, nullptr, values, nullptr, nullptr, 0)));
  });
  ways["send prepared"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.c_str()};
    const std::string prepared = Ended(each, Sent(each, each.SendPrepare("", kParameters, 1, nullptr)));
    return prepared + Ended(each, Sent(each, each.SendQueryPrepared("", 1, values, nullptr, nullptr, 0)));
  });
  ways["row by row"] = Client::By([](auto& each, const std::string& row) {
    const std::string sent = Sent(each, each.SendQuery(With("SELECT book('{}')", row).c_str()));
    const std::string words = Ended(each, sent + std::to_string(each.SetSingleRowMode()));
    (void)each.Exec("SELECT 1");  // libpq 15 forgets the mode with the next command outside of a pipeline alone
    return words;
  });
  ways["copy"] = Client::By([](auto& each, const std::string& row) { return Copied(each, row, nullptr); });
  ways["copy that is given up"] =
      Client::By([](auto& each, const std::string& row) { return Copied(each, row, "given up"); });
  return ways;
}

template <class C>
std::string InTwoPhases(C& connection, const char* ends, int number) {
  const std::string name = "'adversary-cpp-" + std::to_string(number) + "'";
  const std::string words = Told(connection.Exec(("PREPARE TRANSACTION " + name).c_str()));
  const std::string rolled_back = Told(connection.Exec("ROLLBACK"));
  return words + rolled_back + Told(connection.Exec((std::string(ends) + " PREPARED " + name).c_str()));
}

// Whether a row is there, by a text.
Way Reading(const std::string& text) {
  return Client::By([text](auto& each, const std::string& row) -> std::string {
    const std::string found = Told(each.Exec(With(text, row).c_str()));
    if (found.rfind("PGRES_FATAL", 0) == 0) throw Raised{"client", found};
    return found.find(row) != std::string::npos ? "true" : "";
  });
}

// What came of something sent, for a reader.
std::string Found(const std::string& words, const std::string& row) {
  if (words.find("PGRES_FATAL") != std::string::npos) throw Raised{"client", words};
  return words.find(row) != std::string::npos ? "true" : "";
}

Ways ReadsOf() {
  const std::string text = kSelect;
  Ways ways{
      {"exec", Reading(text)},
      {"with", Reading("WITH x AS (" + text + ") SELECT * FROM x")},
      {"values", Reading("VALUES ((" + text + "))")},
      {"text of two", Reading("SELECT 1; " + text)},
      {"cursor", Reading("BEGIN; DECLARE c CURSOR FOR " + text + "; FETCH c")},
  };
  ways["cursor"] = Client::By([text](auto& each, const std::string& row) -> std::string {
    const Reply fetched = each.Exec(With("BEGIN; DECLARE c CURSOR FOR " + text + "; FETCH c", row).c_str());
    (void)each.Exec("ROLLBACK");
    return Found(Told(fetched), row);
  });
  ways["parameters"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.c_str()};
    return Found(Told(each.ExecParams(kSelectParameters, 1, nullptr, values, nullptr, nullptr, 0)), row);
  });
  ways["prepared"] = Client::By([](auto& each, const std::string& row) {
    const char* values[] = {row.c_str()};
    (void)each.Prepare("", kSelectParameters, 1, nullptr);
    return Found(Told(each.ExecPrepared("", 1, values, nullptr, nullptr, 0)), row);
  });
  ways["send"] = Client::By([text](auto& each, const std::string& row) {
    (void)Sent(each, each.SendQuery(With(text, row).c_str()));
    return Found(Drain(each), row);
  });
  ways["row by row"] = Client::By([text](auto& each, const std::string& row) {
    (void)Sent(each, each.SendQuery(With(text, row).c_str()));
    each.SetSingleRowMode();
    return Found(Drain(each), row);
  });
  ways["pipeline"] = Client::By([text](auto& each, const std::string& row) {
    each.EnterPipelineMode();
    std::string words;
    try {
      (void)Sent(each, SendText(each, With(text, row)));
      each.PipelineSync();
      words = Drain(each);
    } catch (const Raised&) {
      each.ExitPipelineMode();
      throw;
    }
    each.ExitPipelineMode();
    return Found(words, row);
  });
  ways["copy"] = Client::By([text](auto& each, const std::string& row) {
    const Reply copy = each.Exec(With("COPY (" + text + ") TO STDOUT", row).c_str());
    std::string words = Told(copy);
    char* buffer = nullptr;
    for (int size = each.GetCopyData(&buffer, 0); size > 0; size = each.GetCopyData(&buffer, 0)) {
      words.append(buffer, static_cast<std::size_t>(size));
      PQfreemem(buffer);
    }
    return Found(words + Drain(each), row);
  });
  return ways;
}

class Store : public AdversaryStore {
 public:
  explicit Store(const AdversarySetup& setup) : setup_(setup), control_(PQconnectdb(setup.primary.c_str()), PQfinish) {
    const Ways texts = TextsOf();
    acts_.insert(texts.begin(), texts.end());
    for (const char* ends : {"COMMIT", "ROLLBACK"}) {
      acts_[std::string(ends) + " in two phases"] =
          Client::By([this, ends](auto& each, const std::string&) { return InTwoPhases(each, ends, ++prepared_); });
    }
    acts_["enter pipeline mode"] =
        Client::By([](auto& each, const std::string&) { return std::to_string(each.EnterPipelineMode()); });
    acts_["exit pipeline mode"] =
        Client::By([](auto& each, const std::string&) { return std::to_string(each.ExitPipelineMode()); });
    acts_["send a begin"] =
        Client::By([](auto& each, const std::string&) { return Ended(each, Sent(each, SendText(each, "BEGIN"))); });
    acts_["send a commit"] =
        Client::By([](auto& each, const std::string&) { return Ended(each, Sent(each, SendText(each, "COMMIT"))); });
    acts_["send an error"] = Client::By(
        [](auto& each, const std::string&) { return Ended(each, Sent(each, SendText(each, "SELECT 1/0"))); });
    acts_["flush"] = Client::By([](auto& each, const std::string&) {
      return std::to_string(each.SendFlushRequest()) + std::to_string(each.Flush());
    });
    acts_["synchronize"] = Client::By([](auto& each, const std::string&) -> std::string {
      return each.PipelineSync() == 1 ? Drain(each) : "no pipeline";
    });
    acts_["synchronize and leave"] =
        Client::By([](auto& each, const std::string&) { return std::to_string(each.PipelineSync()); });
    acts_["take a result"] = Client::By([](auto& each, const std::string&) -> std::string {
      // outside of pipeline mode nothing may be on its way: it never blocks there
      return each.PipelineStatus() == PQ_PIPELINE_OFF ? Told(each.GetResult()) : "not now";
    });
    acts_["kill"] = Client::By([this](auto& each, const std::string&) -> std::string {
      const std::string pid = std::to_string(PQbackendPID(each.get()));
      Told(Reply(PQexec(control_.get(), ("SELECT pg_terminate_backend(" + pid + ", 5000)").c_str())));
      return "";
    });
    acts_["reset"] = Client::By([](auto& each, const std::string&) -> std::string {
      each.Reset();
      return "";
    });
    acts_["new connection"] = [this](AdversaryClient& client, const std::string&) -> std::string {
      auto& either = static_cast<Client&>(client).either;
      const bool plain = either.index() == 1;
      if (plain) {
        either.emplace<1>(Plain(Connect()));
      } else {
        either.emplace<0>(Wrap(setup_.primary, false));
      }
      return "";
    };
  }

  std::unique_ptr<AdversaryClient> Open(int kind, bool plain) override {
    auto client =
        plain ? std::make_unique<Client>(Plain(Connect())) : std::make_unique<Client>(Wrap(setup_.primary, false));
    if (kind % 3 == 1) acts_.at("begin")(*client, "");
    if (kind % 3 == 2) acts_.at("enter pipeline mode")(*client, "");
    return client;
  }

  std::unique_ptr<AdversaryClient> Reader() override { return std::make_unique<Client>(Wrap(setup_.replica, true)); }

  const Ways& Of(const std::string& kind) const override {
    return kind == "write" ? writes_ : kind == "act" ? acts_ : reads_;
  }

 private:
  static Ways TextsOf() {
    Ways ways;
    for (const auto& [name, text] : std::map<std::string, std::string>{
             {"begin", "BEGIN"},
             {"commit", "COMMIT"},
             {"end", "END"},
             {"rollback", "ROLLBACK"},
             {"commit and chain", "COMMIT AND CHAIN"},
             {"rollback and chain", "ROLLBACK AND CHAIN"},
             {"savepoint", "SAVEPOINT s"},
             {"rollback to the savepoint", "ROLLBACK TO s"},
             {"release the savepoint", "RELEASE s"},
             {"error", "SELECT 1/0"},
             {"time-out", "SET LOCAL statement_timeout = 5; SELECT pg_sleep(1)"},
             {"read", "SELECT count(*) FROM posts WHERE false"},
             {"read only", "SET TRANSACTION READ ONLY"},
             {"serializable", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"},
             {"discard", "DISCARD ALL"},
         }) {
      ways[name] = Writing(text);
    }
    return ways;
  }

  PGconn* Connect() const { return Connect(setup_.primary); }
  static PGconn* Connect(const std::string& url) {
    PGconn* connection = PQconnectdb(url.c_str());
    PQsetNoticeProcessor(connection, [](void*, const char*) {}, nullptr);
    return connection;
  }

  Connection Wrap(const std::string& url, bool waits) const {
    auto options = antipode::StoreOptions(setup_.store).Replicas({setup_.replica});
    if (waits) options.WaitOnRead(true);
    auto wrapped = antipode::postgresql::Wrap(Connect(url), options);
    if (!wrapped) throw Failure(wrapped.error().message);
    return *std::move(wrapped);
  }

  const AdversarySetup setup_;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> control_;
  int prepared_ = 0;
  const Ways writes_ = WritesOf();
  Ways acts_;
  const Ways reads_ = ReadsOf();
};

}  // namespace

std::unique_ptr<AdversaryStore> PostgresqlForAdversary(const AdversarySetup& setup) {
  return std::make_unique<Store>(setup);
}

}  // namespace services
