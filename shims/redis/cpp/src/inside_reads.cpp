// Reads that wait, or that say what they depend on: the question and the read in one atomic step on one connection.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "antipode/messages.h"
#include "field.h"
#include "inside.h"
#include "marks.h"
#include "resp.h"
#include "socket.h"

namespace antipode::redis {
namespace {

constexpr std::chrono::milliseconds kOneLook(250);  // so long may one take, however near the deadline is
constexpr const char* kPast =
    "the command was sent before the writes that its reply is to show: take replies before the scope depends on more, "
    "or read anew";
constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";

std::string_view TextOf(const redisReply* reply) {
  return reply == nullptr || reply->str == nullptr ? std::string_view() : std::string_view(reply->str, reply->len);
}

bool IsError(const redisReply* reply) { return reply != nullptr && reply->type == REDIS_REPLY_ERROR; }

// An error that says of the marks that they cannot be read, and nothing against the rest of the answer.
bool IsUnreadable(const redisReply* reply) {
  const std::string_view text = TextOf(reply);
  return text.substr(0, 6) == "NOPERM" || text.substr(0, 9) == "WRONGTYPE";
}

std::string AskMarks(const std::string& key, const std::vector<std::string>& fields) {
  std::vector<std::string_view> words = {"HMGET", key};
  words.insert(words.end(), fields.begin(), fields.end());
  return Pack(words);
}

}  // namespace

// hiredis's next reply. Where a read waits, and none comes by its deadline, the connection is closed: the answer is
// still to come, and would be taken for that of the next command (SHIM-47).
int Connection::Inside::NextReply(void** raw) {
  if (!until_) return redisGetReply(context_.get(), raw);
  const auto until = std::max(*until_, std::chrono::steady_clock::now() + kOneLook);
  while (true) {
    *raw = nullptr;
    if (redisGetReplyFromReader(context_.get(), raw) != REDIS_OK) return REDIS_ERR;
    if (*raw != nullptr) return REDIS_OK;
    for (int is_written = 0; is_written == 0;) {
      if (redisBufferWrite(context_.get(), &is_written) != REDIS_OK) return REDIS_ERR;
    }
    if (!WaitSocket(context_->fd, false, until)) {
      is_late_ = true;
      shutdown(context_->fd, SHUT_RDWR);
    }
    if (redisBufferRead(context_.get()) != REDIS_OK) return REDIS_ERR;
  }
}

// The next reply, which may have been read ahead.
int Connection::Inside::TakeReply(Reply& reply) {
  if (!ready_.empty()) {
    reply = std::move(ready_.front());
    ready_.pop_front();
    return REDIS_OK;
  }
  void* raw = nullptr;
  if (NextReply(&raw) != REDIS_OK) return REDIS_ERR;
  reply = Reply(static_cast<redisReply*>(raw));
  return REDIS_OK;
}

// Reads every reply that is on its way, for the application to take later: then a question of ours is the next.
int Connection::Inside::Drain() {
  const auto comes = [](const ExpectedReply& each) { return !each.is_answer || !each.is_queued; };
  const auto all = static_cast<std::size_t>(std::count_if(expected_.begin(), expected_.end(), comes));
  while (ready_.size() < all) {
    void* raw = nullptr;
    if (NextReply(&raw) != REDIS_OK) {
      Broke();
      return REDIS_ERR;
    }
    ready_.emplace_back(static_cast<redisReply*>(raw));
  }
  return REDIS_OK;
}

std::optional<std::vector<Reply>> Connection::Inside::Exchange(const std::vector<std::string>& packed) {
  for (const std::string& each : packed) {
    if (redisAppendFormattedCommand(context_.get(), each.data(), each.size()) != REDIS_OK) {
      Broke();
      return std::nullopt;
    }
  }
  std::vector<Reply> replies;
  for (std::size_t place = 0; place < packed.size(); ++place) {
    void* raw = nullptr;
    if (NextReply(&raw) != REDIS_OK || raw == nullptr) {
      Broke();
      return std::nullopt;
    }
    replies.emplace_back(static_cast<redisReply*>(raw));
  }
  return replies;
}

// What the replies say; nothing where the server refuses to say where it is.
std::optional<ServerState> Connection::Inside::SeenIn(const std::vector<const redisReply*>& values,
                                               const std::vector<std::string>& fields, ReadCall& read) {
  if (values.empty() || IsError(values[0])) {
    read.Refused(std::string(values.empty() ? std::string_view() : TextOf(values[0])));
    return std::nullopt;
  }
  const auto now = ParseReplication(TextOf(values[0]));
  if (!now) {
    read.Refused("INFO replication answered something else");
    return std::nullopt;
  }
  ServerState seen{*now, {}, true, {}};
  if (fields.empty()) return seen;
  const redisReply* const marks = values.size() > 1 ? values[1] : nullptr;
  if (marks != nullptr && marks->type == REDIS_REPLY_ARRAY && marks->elements == fields.size()) {
    for (std::size_t place = 0; place < fields.size(); ++place) {
      if (const auto at = PositionOfMark(TextOf(marks->element[place])); at) seen.marks.emplace(fields[place], *at);
    }
    return seen;
  }
  if (IsError(marks) && !IsUnreadable(marks)) {
    read.Refused(std::string(TextOf(marks)));
    return std::nullopt;
  }
  seen.marks_known = false;
  seen.why_no_marks = "its marks cannot be read (" + std::string(TextOf(marks)) + ")";
  return seen;
}

// Where the connection's server is, with its marks; nothing (and the read refused) where it does not say.
//
// On a connection that watches keys there is no MULTI of ours: it would end the application's WATCH.
std::optional<ServerState> Connection::Inside::Look(ReadCall& read) {
  constexpr int kAgain = 3;
  std::optional<ServerState> seen;
  for (int times = 0; times < kAgain; ++times) {
    const std::vector<std::string> fields = read.Fields();
    const bool in_multi = !fields.empty() && !watching_;
    std::vector<std::string> asked = {std::string(kQuestion)};
    if (!fields.empty()) asked.push_back(AskMarks(binding_.shim().marks_key(), fields));
    if (in_multi) {
      asked.insert(asked.begin(), std::string(kMulti));
      asked.emplace_back(kExec);
    }
    const auto replies = Exchange(asked);
    if (!replies) return std::nullopt;
    std::vector<const redisReply*> values;
    const redisReply& whole = *replies->back();
    if (!in_multi) {
      for (const Reply& each : *replies) values.push_back(each.get());
    } else if (whole.type == REDIS_REPLY_ARRAY) {
      values.assign(whole.element, whole.element + whole.elements);
    } else {
      // Refused when it was queued: the question itself, or the marks alone.
      values.push_back((*replies)[1].IsError() ? (*replies)[1].get() : &whole);
    }
    seen = SeenIn(values, fields, read);
    if (!seen || !read.Learned(seen->replication.epoch)) break;
  }
  return seen;
}

// The read of a command that is appended now; null where it is a plain one. A batch waits once for each lineage.
ReadPtr Connection::Inside::NewRead(const Site& site) {
  if (silent_ || skips_) return nullptr;  // nothing is answered: neither a value, nor a question of ours
  ReadPtr read = ReadCall::ForSending(binding_, site);
  return read == nullptr || read->refusal() != nullptr ? read : JoinBatch(std::move(read));
}

ReadPtr Connection::Inside::JoinBatch(ReadPtr read) {
  for (const ReadPtr& each : batch_reads_) {
    if (each->Serves(*read)) return each;
  }
  batch_reads_.push_back(read);
  return read;
}

void Connection::Inside::AppendRead(ExpectedReply& expected, std::string_view packed, const Site& site) {
  const ReadPtr read = multi_ && multi_sent_ ? ReadCall::CaseShims(binding_, site) : NewRead(site);
  if (IsRefused(read)) return;
  if (!multi_) {
    if (read != nullptr) expected.reads.push_back(read);
    expected.moment.Add(ReadCall::Reader(binding_));
  } else if (multi_sent_ && read != nullptr && !IsAwaited(*read)) {
    if (auto past = read->Past(); !past.ok()) {
      refused_ = past.error();
      return;
    }
  }
  const auto serves = [&](const ReadPtr& each) { return each->Serves(*read); };
  if (multi_ && read != nullptr && std::none_of(multi_reads_.begin(), multi_reads_.end(), serves)) {
    multi_reads_.push_back(read);
  }
  is_read_ = is_read_ || multi_;
  if (multi_) multi_moment_.Add(ReadCall::Reader(binding_));
  expected.told = ReadCall::Told(binding_, !multi_, site);  // inside a MULTI the value comes with EXEC
  if (expected.told == nullptr) return;
  if (read != nullptr) read->Covers(expected.told);
  expected.packed = packed;
}

// Whether what it is to see was waited for before the open MULTI.
bool Connection::Inside::IsAwaited(const ReadCall& read) const {
  Lineage awaited;
  for (const ReadPtr& each : multi_reads_) awaited = awaited.Including(each->ids());
  return Lineage(read.ids()).IsCoveredBy(awaited);
}

// A command that may write is about to be appended, and may read (SHIM-44): once it was sent it would be too late to
// refuse it. What it has waited for; null where nothing waits.
ReadPtr Connection::Inside::WaitNow(const Site& site) {
  if (silent_ || skips_) return nullptr;
  ReadPtr read = ReadCall::ForWaiting(binding_, site);
  if (IsRefused(read) || read == nullptr || read->ids().empty()) return read;
  std::vector<ReadPtr> awaited = {read};
  if (multi_ && multi_sent_) {
    awaited = multi_reads_;
    if (auto past = IsAwaited(*read) ? Result<void>() : read->Past(); !past.ok()) refused_ = past.error();
  } else if (!WaitHere(*read)) {
    refused_ = LateError(*read);
    return read;  // a connection that broke says so by itself
  }
  for (const ReadPtr& each : awaited) {
    if (auto done = each->Finish(); !done.ok() && !refused_) refused_ = done.error();
  }
  return read;
}

// What a command that may read waited for may have grown until it is sent.
void Connection::Inside::KeepRead(ExpectedReply& expected, const ReadPtr& read) {
  (multi_ ? multi_moment_ : expected.moment).Add(ReadCall::Reader(binding_));
  if (read == nullptr || (multi_ && multi_sent_)) return;
  (multi_ ? multi_reads_ : expected.reads).push_back(JoinBatch(read));
}

void Connection::Inside::Moment::Add(std::shared_ptr<const Read> reader) {
  const auto is_same = [&](const auto& each) { return each->IsLike(*reader); };
  if (std::none_of(readers.begin(), readers.end(), is_same)) readers.push_back(std::move(reader));
}

// Who takes data depends on them, whoever asked for them (SCOPE-24). Where the question for their position was not
// asked, or has been answered, nobody knows what covers them.
void Connection::Inside::JoinTaker(ExpectedReply& expected, const redisReply& reply) {
  const auto collects = [](const ReadPtr& each) { return each->collects(); };
  const bool is_read = std::any_of(expected.reads.begin(), expected.reads.end(), collects);
  if (expected.moment.readers.empty() || reply.type == REDIS_REPLY_ERROR) return;
  if (expected.write != nullptr && !is_read) return;  // which tells who takes it, too
  ReadPtr taker = ReadCall::ForTaking(binding_, Site());
  if (taker == nullptr) return;
  const auto is_it = [&](const ReadPtr& each) { return each->CollectsLike(*taker); };
  if (std::any_of(expected.reads.begin(), expected.reads.end(), is_it)) return;
  const auto is_answer = [](const ExpectedReply& each) { return each.is_answer; };
  const auto answer = std::find_if(expected_.begin(), expected_.end(), is_answer);
  if (answer == expected_.end()) {
    taker->Saw(std::nullopt);
  } else {
    const auto known = std::find_if(answer->reads.begin(), answer->reads.end(), is_it);
    if (known == answer->reads.end()) {
      answer->reads.push_back(taker);
    } else {
      taker = *known;
    }
  }
  expected.reads.push_back(std::move(taker));
}

// Waits for what the data of the batch are to show by now, and for what their taker wants. False where the connection
// broke.
bool Connection::Inside::WaitForBatch() {
  std::vector<ReadPtr> reads = batch_reads_;  // where the connection breaks the batch is forgotten
  const bool gives_data = !multi_sent_ && std::any_of(batch_.begin(), batch_.end(), [](const ExpectedReply& each) {
    return each.is_multi || !each.moment.readers.empty();
  });
  const ReadPtr taker = gives_data ? ReadCall::ForWaiting(binding_, Site()) : nullptr;
  if (taker != nullptr) reads.push_back(taker);
  Lineage proof;
  Lineage asked;
  for (const ReadPtr& read : reads) {
    const bool is_new = read->Renew();
    const Lineage wanted(read->ids());
    const bool is_known = wanted.IsCoveredBy(read == taker ? asked : proof);
    if (is_new && !is_known && !WaitHere(*read)) {
      late_ = LateError(*read);
      return false;
    }
    proof = proof | read->proof();
    asked = asked | wanted;
  }
  if (multi_) multi_moment_.proof = multi_moment_.proof | proof;
  for (ExpectedReply& each : batch_) {
    if (each.moment.readers.empty()) continue;
    each.moment.proof = each.moment.proof | proof;
    // What it waited for in vain is told of by itself.
    for (const ReadPtr& read : each.reads) each.moment.proof = each.moment.proof.Including(read->ids());
  }
  return true;
}

// The server was here: what was sent behind that question shows all before.
void Connection::Inside::Prove(const std::optional<Replication>& now) {
  const auto position = now ? now->Position() : std::nullopt;
  if (!position) return;
  const auto id = WriteId::Position(binding_.name(), position->epoch, position->counter);
  if (!id.ok()) return;
  if (multi_sent_) multi_moment_.proof = multi_moment_.proof.Including(*id);
  for (ExpectedReply& each : expected_) {
    if (!each.moment.readers.empty()) each.moment.proof = each.moment.proof.Including(*id);
  }
}

// Why data of this moment are too old for those who read them, or who takes them now; nothing where they are not.
std::optional<Error> Connection::Inside::PastError(const Moment& moment) const {
  if (moment.readers.empty()) return std::nullopt;
  std::optional<Error> misspelt;
  const auto shows = [&](const std::shared_ptr<const Read>& each) {
    const auto wanted = each->Required();
    if (!wanted.ok()) misspelt = wanted.error();
    return wanted.ok() && Lineage(*wanted).IsCoveredBy(moment.proof);
  };
  const std::shared_ptr<const Read> taker = ReadCall::Reader(binding_);
  if (shows(taker) && std::all_of(moment.readers.begin(), moment.readers.end(), shows)) return std::nullopt;
  if (misspelt) return misspelt;
  auto done = taker->RefusePast(kPast);
  return done.ok() ? std::nullopt : std::optional<Error>(done.error());
}

// Waits on this connection, with nothing but questions; false where it broke.
bool Connection::Inside::WaitFor(ReadCall& read) {
  while (true) {
    const auto seen = Look(read);
    if (!seen) return context_->err == 0;
    if (!read.Again(read.Judge(*seen))) return true;
  }
}

// The same behind all replies that are on their way.
bool Connection::Inside::WaitHere(ReadCall& read) {
  until_ = read.deadline();
  const bool done = Drain() == REDIS_OK && WaitFor(read);
  until_.reset();
  return done;
}

// What is told of a wait whose answer did not come in time; nothing where another thing broke the connection.
std::optional<Error> Connection::Inside::LateError(ReadCall& read) const {
  if (!is_late_) return std::nullopt;
  read.Late();
  if (auto done = read.Finish(); !done.ok()) return done.error();
  return std::nullopt;
}

// Reads as it is sent where lineages rest beside values, and gives what the application is to get.
Reply Connection::Inside::ReadShown(const Words& words, std::string_view packed, ReadCall& read) {
  const LineagePlacement& resting = binding_.resting;
  if (!resting.any()) return ReadInMulti(packed, {}, read);
  const auto wire = resting.WireRead(words);
  const bool asks = read.collects() && resting.ReadsHash(words);
  Reply reply =
      ReadInMulti(wire ? std::string_view(*wire) : packed, asks ? field::AskBeside(words) : std::string(), read);
  if (!reply) return reply;
  const Shown shown = resting.Answers(words);
  const Beside beside = resting.Show(shown, *reply.get());
  if (!asks && !shown.is_plain()) read.SawBeside(beside);
  return reply;
}

Reply Connection::Inside::ReadInMulti(std::string_view packed, const std::string& ask_beside, ReadCall& read) {
  while (true) {
    const std::vector<std::string> fields = read.Fields();
    std::vector<std::string> asked = {std::string(kMulti), std::string(kQuestion)};
    if (!fields.empty()) asked.push_back(AskMarks(binding_.shim().marks_key(), fields));
    if (!ask_beside.empty()) asked.push_back(ask_beside);
    asked.emplace_back(packed);
    asked.emplace_back(kExec);
    auto replies = Exchange(asked);
    if (!replies) return {};
    redisReply& whole = *replies->back().get();
    const bool is_whole = whole.type == REDIS_REPLY_ARRAY && whole.elements + 2 == asked.size();
    if (!is_whole) {
      Reply& own = (*replies)[replies->size() - 2];
      if (own.IsError()) return std::move(own);  // the read itself was refused: the application's error
      return ReadPlainly(packed, *replies, read);
    }
    const auto seen = SeenIn({whole.element, whole.element + whole.elements - 1}, fields, read);
    redisReply*& last = whole.element[whole.elements - 1];
    if (!seen) {
      read.Saw(std::nullopt);
      return Reply(std::exchange(last, nullptr));
    }
    if (read.Learned(seen->replication.epoch)) continue;  // whether its own epoch is marked decides about the others
    if (read.Again(read.ids().empty() ? std::nullopt : read.Judge(*seen))) continue;
    read.Saw(seen->replication);
    if (!ask_beside.empty()) {
      const std::string_view text = TextOf(whole.element[whole.elements - 2]);
      const bool there = whole.element[whole.elements - 2]->type == REDIS_REPLY_STRING;
      if (there) {
        read.SawBeside({LineageAtRest(text, binding_.name(), binding_.options.lineage_in.value_or(true)), false});
      }
    }
    return Reply(std::exchange(last, nullptr));
  }
}

// What we asked beside the read was refused: it is done without.
Reply Connection::Inside::ReadPlainly(std::string_view packed, const std::vector<Reply>& refused, ReadCall& read) {
  std::string words;
  for (const Reply& each : refused) {
    if (words.empty() && each.IsError()) words = each.text();
  }
  read.Refused(words);
  read.Saw(std::nullopt);
  auto replies = Exchange({std::string(packed)});
  if (!replies) return {};
  return std::move(replies->front());
}

}  // namespace antipode::redis
