/// \file
/// Redis for C++ services: a hiredis connection whose writes join the request's lineage (shims/redis/README.md).
///
///     auto posts = antipode::redis::Wrap(redisConnect("a.redis", 6379), {"blog-posts"});
///     antipode::redis::Reply r = posts->Command("SET %s %b", "post:42", body.data(), body.size());
///
///     antipode::redis::Register(antipode::StoreOptions("blog-posts").Replicas({"redis://b1.redis",
///     "redis://b2.redis"})); antipode::BarrierResult result =
///     antipode::Barrier(antipode::BarrierOptions().Timeout(1s));
#ifndef ANTIPODE_REDIS_H_
#define ANTIPODE_REDIS_H_

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <cstdarg>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/site.h"
#include "antipode/store.h"

namespace antipode ANTIPODE_EXPORT {
namespace redis {

/// How a connection is wrapped: the words of every store, and two of Redis' own.
struct Options : StoreOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is what most wraps say.
  Options(const char* store) : StoreOptions(store) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Options(std::string store) : StoreOptions(std::move(store)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): options of any store are options of this one.
  Options(StoreOptions options) : StoreOptions(std::move(options)) {}

  /// The server's URL, `redis://user:password@host:port/db`: the credentials and the database of our own connections.
  /// These go where the wrapped one leads (BAR-68); to the URL's host where it does not say, as one that was made of a
  /// descriptor. The database is also where the marks are.
  std::string url;
  /// The key of the hash that holds the marks; the same in every process.
  std::string marks_key = "antipode:epochs";

  Options& Url(std::string value) {
    url = std::move(value);
    return *this;
  }
  Options& MarksKey(std::string value) {
    marks_key = std::move(value);
    return *this;
  }
};

/// A reply of hiredis', freed with this object; or nothing, where hiredis gives a null pointer.
class Reply {
 public:
  Reply() = default;
  explicit Reply(redisReply* taken) : reply_(taken) {}
  explicit Reply(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}

  redisReply* get() const { return reply_.get(); }
  redisReply* operator->() const { return reply_.get(); }
  const redisReply& operator*() const { return *reply_; }
  explicit operator bool() const { return reply_ != nullptr; }
  /// The reply as hiredis' own, for whoever frees it by `freeReplyObject`.
  redisReply* release() { return reply_.release(); }

  /// Whether the server answered with an error.
  bool IsError() const { return reply_ != nullptr && reply_->type == REDIS_REPLY_ERROR; }
  /// The octets of a string, status or error; empty for others.
  std::string_view text() const {
    return reply_ != nullptr && reply_->str != nullptr ? std::string_view(reply_->str, reply_->len)
                                                       : std::string_view();
  }

  /// Why there is no reply though the connection is good: a read that was to wait did so in vain (kTimedOut, kUnproven,
  /// kRedeliver), or the command cannot be used with such a key, and was not sent (kConfiguration). Null for everything
  /// else: where the connection broke, the connection's `err()` says so.
  const Error* error() const { return error_.get(); }

 private:
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };

  std::unique_ptr<redisReply, Free> reply_;
  std::shared_ptr<const Error> error_;
};

/// A format of hiredis', and the place of the call.
struct Format {
  // NOLINTNEXTLINE(google-explicit-constructor): it stands where hiredis has a `const char*`.
  Format(const char* format, Site where = Site()) : text(format), site(where) {}

  const char* text;
  Site site;
};

/// A hiredis connection in the blocking mode, with hiredis' own words, whose writes join the current scope. Made by
/// `Wrap`.
///
/// As a `redisContext` it serves one thread at a time. Replies, errors and their order are hiredis' own; the question
/// for a write's position rides in the same packet, and its answer is taken out. `MULTI`, pipelines, scripts, pub/sub
/// work as before.
class Connection {
 public:
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Ends the connection. What was sent and not answered has an unknown outcome.
  ~Connection();

  /// `redisCommand`: sends, and gives the reply; nothing where the connection broke, or (`Reply::error`) where a read
  /// that was to wait did so in vain. Where the server did not answer by its deadline, the connection is closed, too
  /// (SHIM-47): `Reconnect`.
  Reply Command(Format format, ...);
  Reply CommandV(Format format, va_list arguments);
  Reply CommandArgv(int argc, const char** argv, const std::size_t* argvlen, Site site = Site());

  /// `redisAppendCommand`: for pipelines. What may write is pending from here on (SCOPE-14).
  int Append(Format format, ...);
  int AppendV(Format format, va_list arguments);
  int AppendArgv(int argc, const char** argv, const std::size_t* argvlen, Site site = Site());
  /// Why the last command was refused before anything was sent: REDIS_ERR of an `Append` with a good connection, and no
  /// reply. It cannot be used with a key whose value is in an envelope (kConfiguration), or what it is to see cannot
  /// be waited for any more (SHIM-48), or names the store otherwise (BAR-51). Null where it was not refused.
  const Error* refused() const;
  /// `redisGetReply`: sends what was appended, with one question behind it, and gives the next reply. What is sent then
  /// shows what its scope, and the caller's, depend on by then. REDIS_OK also where the reply is a read's that waited
  /// in vain, or that was sent before writes on which they depend by now (SHIM-48, AP514): then it is empty and has an
  /// `error`, whatever its command did.
  int GetReply(Reply* reply);

  /// `redisReconnect`: the same address anew. What was on its way has an unknown outcome; queued transactions are gone.
  int Reconnect();
  /// `redisSetTimeout`.
  int SetTimeout(const timeval& timeout);

  /// The error of hiredis' context, and its words; 0 and "" where there is none.
  int err() const;
  const char* errstr() const;

  /// The plain context: the way round the shim. Not while replies are on their way.
  redisContext* context() const;
  const std::shared_ptr<Store>& store() const;

 private:
  friend Result<Connection> Wrap(redisContext* context, const Options& options);
  class Inside;
  explicit Connection(std::unique_ptr<Inside> inside);

  std::unique_ptr<Inside> inside_;
};

/// Takes a connection over, whose writes are recorded under the store's name from now on; it is freed with the object
/// returned, and also where this fails.
///
/// Asks the server by a connection of its own for rights and topology: a Redis Cluster is kUnfitStore, unless the
/// options say `OnUnfit::kUnproven`. A server that does not answer now is no error. kConfiguration: options that cannot
/// be, a non-blocking context, or a server that wants credentials and `Options::url` has none.
Result<Connection> Wrap(redisContext* context, const Options& options);

/// This process waits for a store's servers, and never reads or writes it: give their URLs as `Replicas`.
Result<void> Register(const Options& options);

}  // namespace redis
}  // namespace antipode

#endif  // ANTIPODE_REDIS_H_
