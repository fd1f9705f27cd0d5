// hiredis, as the adversary plays it; the function library and the watched keys are the Python stage's.
#include <antipode/redis.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adversary.h"
#include "redis_client.h"
#include "setup.h"

namespace services {
namespace {

using antipode::redis::Connection;
using antipode::redis::Reply;
using Words = std::vector<std::string>;

constexpr const char* kSet = "return redis.call('SET', KEYS[1], 's')";
constexpr const char* kSetAndFail = "redis.call('SET', KEYS[1], 's'); return redis.call('NO SUCH COMMAND')";
constexpr const char* kExists = "return redis.call('EXISTS', KEYS[1])";
constexpr const char* kRow = "{}";

// hiredis itself, with the words of the wrapped connection.
class Plain {
 public:
  explicit Plain(RedisContext context) : context_(std::move(context)) {}

  Reply CommandArgv(int count, const char** words, const std::size_t* lengths) {
    return Reply(static_cast<redisReply*>(redisCommandArgv(context_.get(), count, words, lengths)));
  }
  int AppendArgv(int count, const char** words, const std::size_t* lengths) {
    return redisAppendCommandArgv(context_.get(), count, words, lengths);
  }
  int GetReply(Reply* reply) {
    void* got = nullptr;
    const int code = redisGetReply(context_.get(), &got);
    *reply = Reply(static_cast<redisReply*>(got));
    return code;
  }
  int Reconnect() { return redisReconnect(context_.get()); }
  int err() const { return context_->err; }
  const char* errstr() const { return context_->errstr; }

 private:
  RedisContext context_;
};

// A connection, and how many replies are still to be taken.
template <class C>
struct Link {
  C connection;
  int outstanding = 0;
};

using Client = EitherClient<Link<Connection>, Link<Plain>>;

std::string Told(const redisReply* reply) {
  switch (reply->type) {
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply->integer);
    case REDIS_REPLY_NIL:
      return "nil";
    case REDIS_REPLY_ARRAY: {
      std::string words = "[";
      for (std::size_t at = 0; at < reply->elements; ++at) words += Told(reply->element[at]) + " ";
      return words + "]";
    }
    default:
      return std::string(reply->str, reply->len);
  }
}

template <class C>
std::string Told(C& connection, const Reply& reply) {
  if (reply.error() != nullptr) throw Raised{"antipode", reply.error()->message};
  return reply ? Told(reply.get()) : std::string("nothing: ") + connection.errstr();
}

// Words in the form of hiredis, with the row in its place.
class Argv {
 public:
  Argv(const Words& words, const std::string& row) : words_(words) {
    for (std::string& each : words_) {
      if (each == kRow) each = row;
      pointers_.push_back(each.c_str());
      lengths_.push_back(each.size());
    }
  }

  int count() const { return static_cast<int>(words_.size()); }
  const char** words() { return pointers_.data(); }
  const std::size_t* lengths() const { return lengths_.data(); }

 private:
  Words words_;
  std::vector<const char*> pointers_;
  std::vector<std::size_t> lengths_;
};

template <class C>
std::string Ask(Link<C>& link, const Words& words, const std::string& row = "") {
  Argv argv(words, row);
  return Told(link.connection, link.connection.CommandArgv(argv.count(), argv.words(), argv.lengths()));
}

template <class C>
std::string Append(Link<C>& link, const Words& words, const std::string& row) {
  Argv argv(words, row);
  const int code = link.connection.AppendArgv(argv.count(), argv.words(), argv.lengths());
  if (code == REDIS_OK) ++link.outstanding;
  return code == REDIS_OK ? "appended" : std::string("not appended: ") + link.connection.errstr();
}

template <class C>
std::string Take(Link<C>& link, int most) {
  std::string words;
  for (; most > 0 && link.outstanding > 0; --most) {
    Reply reply;
    --link.outstanding;
    if (link.connection.GetReply(&reply) != REDIS_OK) {
      link.outstanding = 0;
      return words + link.connection.errstr();
    }
    words += Told(link.connection, reply) + "; ";
  }
  return words;
}

Way Asking(const Words& words) {
  return Client::By([words](auto& link, const std::string& row) { return Ask(link, words, row); });
}

// Commands that are sent together, and their replies; those of before come first.
Way Together(const std::vector<Words>& commands) {
  return Client::By([commands](auto& link, const std::string& row) {
    std::string words;
    for (const Words& each : commands) words += Append(link, each, row);
    return words + Take(link, 1000);
  });
}

// Commands one after another.
Way InTurn(const std::vector<Words>& commands) {
  return Client::By([commands](auto& link, const std::string& row) {
    std::string words;
    for (const Words& each : commands) words += Ask(link, each, row) + "; ";
    return words;
  });
}

Ways WritesOf() {
  const std::vector<std::pair<std::string, Words>> commands{
      {"set", {"SET", kRow, "v"}},
      {"set with options", {"SET", kRow, "v", "PX", "600000", "NX"}},
      {"mset", {"MSET", kRow, "v"}},
      {"append", {"APPEND", kRow, "v"}},
      {"increment", {"INCR", kRow}},
      {"hash", {"HSET", kRow, "f", "v"}},
      {"list", {"RPUSH", kRow, "v"}},
      {"sorted set", {"ZADD", kRow, "1", "v"}},
      {"stream", {"XADD", kRow, "*", "f", "v"}},
      {"bit", {"SETBIT", kRow, "3", "1"}},
      {"hyperloglog", {"PFADD", kRow, "v"}},
      {"copy", {"COPY", "source", kRow}},
      {"sort and store", {"SORT", "numbers", "STORE", kRow}},
      {"command of several words", {"BITFIELD", kRow, "SET", "u8", "0", "255"}},
      {"command in small letters", {"getset", kRow, "v"}},
      {"script", {"EVAL", kSet, "1", kRow}},
      {"script that fails", {"EVAL", kSetAndFail, "1", kRow}},
      {"function", {"FCALL", "put", "1", kRow}},
  };
  Ways ways;
  for (const auto& [name, words] : commands) {
    ways[name] = Asking(words);
    ways[name + ", appended"] =
        Client::By([words = words](auto& link, const std::string& row) { return Append(link, words, row); });
  }
  const Words set{"SET", kRow, "p"};
  const Words wrong{"LPUSH", kRow, "1"};
  ways["script by its hash"] = Client::By([](auto& link, const std::string& row) {
    const std::string hash = Ask(link, {"SCRIPT", "LOAD", kSet});
    return Ask(link, {"EVALSHA", hash, "1", kRow}, row);
  });
  ways["pipeline"] = Together({{"GET", "source"}, set, {"GET", kRow}});
  ways["pipeline that fails"] = Together({set, wrong});
  ways["pipeline that ends with a failing script"] = Together({{"EVAL", kSetAndFail, "1", kRow}});
  ways["transaction"] = InTurn({{"MULTI"}, set, {"EXEC"}});
  ways["transaction that fails"] = InTurn({{"MULTI"}, set, wrong, {"EXEC"}});
  ways["transaction at once"] = Together({{"MULTI"}, set, {"EXEC"}});
  ways["transaction at once that fails"] = Together({{"MULTI"}, set, {"NO SUCH COMMAND"}, {"EXEC"}});
  ways["transaction behind a watch"] = InTurn({{"WATCH", "watched"}, {"MULTI"}, set, {"EXEC"}});
  ways["behind a watch"] = InTurn({{"WATCH", "watched"}, set, {"UNWATCH"}});
  ways["transaction that is killed"] = Client::By([set](auto& link, const std::string& row) {
    const std::string own = Ask(link, {"CLIENT", "ID"});
    for (const Words& each : {Words{"MULTI"}, set, Words{"CLIENT", "KILL", "ID", own, "SKIPME", "no"},
                              Words{"EXISTS", kRow}, Words{"EXEC"}}) {
      Append(link, each, row);
    }
    Take(link, 1000);
    return std::string();
  });
  return ways;
}

Ways ActsOf() {
  Ways ways{
      {"multi", Asking({"MULTI"})},
      {"exec", Asking({"EXEC"})},
      {"discard", Asking({"DISCARD"})},
      {"watch", Asking({"WATCH", "watched"})},
      {"unwatch", Asking({"UNWATCH"})},
      {"read", Asking({"EXISTS", "source"})},
      {"error", Asking({"LPUSH", "source", "1"})},
      {"unknown", Asking({"NO SUCH COMMAND"})},
      {"reset", Asking({"RESET"})},
  };
  for (const char* word : {"MULTI", "EXEC", "DISCARD"}) {
    ways[std::string(word) + ", appended"] =
        Client::By([word](auto& link, const std::string& row) { return Append(link, {word}, row); });
  }
  ways["read, appended"] =
      Client::By([](auto& link, const std::string& row) { return Append(link, {"EXISTS", "source"}, row); });
  ways["take a reply"] = Client::By([](auto& link, const std::string&) { return Take(link, 1); });
  ways["take all replies"] = Client::By([](auto& link, const std::string&) { return Take(link, 1000); });
  ways["reconnect"] = Client::By([](auto& link, const std::string&) {
    link.outstanding = 0;
    return std::to_string(link.connection.Reconnect());
  });
  return ways;
}

std::string Found(const std::string& told, const std::string& found) {
  if (told.rfind("nothing", 0) == 0) throw Raised{"client", told};
  return told.find(found) != std::string::npos ? "true" : "";
}

Way Reading(const Words& words, const std::string& found) {
  return Client::By([words, found](auto& link, const std::string& row) {
    return Found(Ask(link, words, row), found.empty() ? row : found);
  });
}

Ways ReadsOf() {
  Ways ways{
      {"exists", Reading({"EXISTS", kRow}, "1")},
      {"keys", Reading({"KEYS", kRow}, "")},
      {"scan", Reading({"SCAN", "0", "MATCH", kRow, "COUNT", "10000"}, "")},
      {"in small letters", Reading({"exists", kRow}, "1")},
      {"script", Reading({"EVAL_RO", kExists, "1", kRow}, "1")},
      {"script that may write", Reading({"EVAL", kExists, "1", kRow}, "1")},
      {"function", Reading({"FCALL_RO", "look", "1", kRow}, "1")},
  };
  ways["pipeline"] = Client::By([](auto& link, const std::string& row) {
    Append(link, {"EXISTS", kRow}, row);
    return Found(Take(link, 1), "1");
  });
  ways["transaction"] = Client::By([](auto& link, const std::string& row) {
    for (const char* word : {"MULTI", "", "EXEC"}) {
      Append(link, *word == '\0' ? Words{"EXISTS", kRow} : Words{word}, row);
    }
    while (link.outstanding > 1) Take(link, 1);
    return Found(Take(link, 1), "1");
  });
  return ways;
}

class Store : public AdversaryStore {
 public:
  explicit Store(AdversarySetup setup) : setup_(std::move(setup)) {
    acts_["new client"] = [this](AdversaryClient& client, const std::string&) -> std::string {
      auto& either = static_cast<Client&>(client).either;
      if (either.index() == 1) {
        either.emplace<1>(Link<Plain>{Plain(ConnectHiredis(setup_.primary))});
      } else {
        either.emplace<0>(Link<Connection>{Wrap(setup_.primary, false)});
      }
      return "";
    };
  }

  std::unique_ptr<AdversaryClient> Open(int kind, bool plain) override {
    auto client = plain ? std::make_unique<Client>(Link<Plain>{Plain(ConnectHiredis(setup_.primary))})
                        : std::make_unique<Client>(Link<Connection>{Wrap(setup_.primary, false)});
    if (kind % 4 == 3) acts_.at("multi")(*client, "");
    return client;
  }

  std::unique_ptr<AdversaryClient> Reader() override {
    return std::make_unique<Client>(Link<Connection>{Wrap(setup_.replica, true)});
  }

  const Ways& Of(const std::string& kind) const override {
    return kind == "write" ? writes_ : kind == "act" ? acts_ : reads_;
  }

 private:
  Connection Wrap(const std::string& url, bool waits) const {
    auto options = antipode::StoreOptions(setup_.store).Replicas({setup_.replica});
    if (waits) options.WaitOnRead(true);
    auto wrapped = antipode::redis::Wrap(ConnectHiredis(url).release(), options);
    if (!wrapped) throw Failure(wrapped.error().message);
    return *std::move(wrapped);
  }

  const AdversarySetup setup_;
  const Ways writes_ = WritesOf();
  Ways acts_ = ActsOf();
  const Ways reads_ = ReadsOf();
};

}  // namespace

std::unique_ptr<AdversaryStore> RedisForAdversary(const AdversarySetup& setup) {
  return std::make_unique<Store>(setup);
}

}  // namespace services
