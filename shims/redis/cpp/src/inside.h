// What is on its way on one connection: which replies are the application's, which are ours, and what they settle.
#ifndef ANTIPODE_REDIS_INSIDE_H_
#define ANTIPODE_REDIS_INSIDE_H_

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/redis.h"
#include "antipode/shim/read.h"
#include "binding.h"
#include "commands.h"
#include "noting.h"
#include "read_call.h"
#include "repeating.h"
#include "write_call.h"

namespace antipode::redis {

class Connection::Inside {
 public:
  Inside(redisContext* context, std::shared_ptr<Store> store, std::shared_ptr<Lead> lead, Target target,
         const Options& options);
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside();

  redisContext* context() const { return context_.get(); }
  const std::shared_ptr<Store>& store() const { return binding_.store; }

  // Packed commands, as hiredis formats them.
  int Append(std::string_view packed, const Site& site);
  Reply Command(std::string_view packed, const Site& site);
  int GetReply(Reply* reply);
  int Reconnect();
  // Why the last command was refused before it was sent; null where it was not.
  const Error* refused() const { return refused_ ? &*refused_ : nullptr; }

 private:
  // Of data: for whom they are, and which writes they show in any case (SHIM-48). What is no data is for nobody.
  struct Moment {
    void Add(std::shared_ptr<const Read> reader);

    std::vector<std::shared_ptr<const Read>> readers;
    Lineage proof;
  };
  // A command of this application's, of which no reply has come, or (`is_answer`) our question behind some.
  struct ExpectedReply {
    bool is_answer = false;
    bool is_exec = false;
    bool is_multi = false;
    bool is_queued = false;  // it stands in a MULTI: its reply is QUEUED. Of an answer: no question was asked
    WritePtr write;          // that it is, or that an EXEC ends
    WritePtr dropped;        // that a DISCARD or RESET ends
    std::shared_ptr<Read> told = nullptr;      // of a read that observers hear of
    std::string packed = {};                   // of such a read
    std::optional<std::size_t> noted_at = {};  // of a write: its place in what a history is told
    Shown shown = {};        // how its reply is to be read
    std::vector<WritePtr> writes;  // that our question serves
    std::vector<ReadPtr> reads;    // likewise; of a command: that may have waited in vain
    Moment moment = {};
  };
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  // Appending
  void AppendTransaction(const std::string& name, ExpectedReply& expected, const Site& site);
  void AppendOther(const std::string& name, const Words& words, ExpectedReply& expected);
  void AppendWrite(Kind kind, ExpectedReply& expected, const Site& site);
  void Follow(const Words& words, const std::string& name);
  WritePtr NewWrite(Kind kind, const Site& site);
  bool IsRefused(const Words& words);
  bool IsRefused(const ReadPtr& read);
  std::optional<std::string> Wire(const Words& words, Kind kind, const WritePtr& write) const;

  // Sending
  bool Asks() const;
  void Ask();
  int Flush();
  int Drain();

  // Receiving
  int NextReply(void** raw);
  int TakeReply(Reply& reply);
  int ReadReply(Reply& reply);
  bool ReadAnswers();
  void Settle(ExpectedReply& expected, const redisReply& reply);
  void Alone();
  void Show(const ExpectedReply& expected, redisReply& reply);
  void Broke();
  void LoseAll(std::size_t kept = 0);
  bool InMessages(const redisReply& reply);

  // Who observes
  void Tell(Read& told, std::string_view packed, const redisReply& reply, bool is_queued) const;
  void NoteQueued(const ExpectedReply& expected, const redisReply& reply);

  // Reads that wait, or say what they depend on
  std::optional<std::vector<Reply>> Exchange(const std::vector<std::string>& packed);
  std::optional<ServerState> Look(ReadCall& read);
  bool WaitFor(ReadCall& read);
  bool WaitHere(ReadCall& read);
  std::optional<Error> LateError(ReadCall& read) const;
  void AppendRead(ExpectedReply& expected, std::string_view packed, const Site& site);
  ReadPtr NewRead(const Site& site);
  ReadPtr JoinBatch(ReadPtr read);
  bool IsAwaited(const ReadCall& read) const;
  ReadPtr WaitNow(const Site& site);
  void KeepRead(ExpectedReply& expected, const ReadPtr& read);
  bool WaitForBatch();
  void JoinTaker(ExpectedReply& expected, const redisReply& reply);
  void Prove(const std::optional<Replication>& now);
  std::optional<Error> PastError(const Moment& moment) const;
  Reply ReadShown(const Words& words, std::string_view packed, ReadCall& read);
  Reply ReadInMulti(std::string_view packed, const std::string& ask_beside, ReadCall& read);
  Reply ReadPlainly(std::string_view packed, const std::vector<Reply>& refused, ReadCall& read);
  std::optional<ServerState> SeenIn(const std::vector<const redisReply*>& values, const std::vector<std::string>& fields,
                             ReadCall& read);

  const std::unique_ptr<redisContext, Free> context_;
  Binding binding_;
  ReadRepeater repeating_;

  std::string unsent_;
  std::deque<ExpectedReply> batch_;     // of `unsent_`
  std::size_t asked_ = 0;          // so many of them have their question
  std::deque<ExpectedReply> expected_;  // of what was sent
  std::deque<Reply> ready_;        // read ahead of the application, and settled when it takes them
  std::vector<ReadPtr> batch_reads_;  // the commands of one batch that wait for the same are one read
  // Of an open MULTI: what was waited for before it, and what reads inside it collect.
  std::vector<ReadPtr> multi_reads_;
  Moment multi_moment_;              // of what its EXEC will give
  WritePtr held_;  // pending for an open MULTI
  std::vector<Shown> queued_;  // how the replies in its EXEC's are to be read
  // The places of its commands in what a history is told of them.
  std::vector<std::optional<std::size_t>> queued_noted_;
  std::optional<Error> refused_;
  std::optional<std::chrono::steady_clock::time_point> until_;  // while a read waits: its deadline
  bool is_late_ = false;        // a read waited in vain for an answer here, and the connection is closed
  std::optional<Error> late_;   // which is for the application to hear
  bool multi_ = false;
  bool is_read_ = false;     // something is read inside it
  bool multi_sent_ = false;  // and the server has it: inside, nothing can be asked
  bool watching_ = false;
  bool messages_ = false;  // the connection is for messages
  bool silent_ = false;    // CLIENT REPLY OFF
  bool skips_ = false;     // CLIENT REPLY SKIP
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_INSIDE_H_
