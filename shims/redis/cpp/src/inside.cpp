#include "inside.h"

#include <algorithm>
#include <utility>

#include "info.h"

namespace antipode::redis {
namespace {

constexpr const char* kRefusedMulti = "it was done at once, its MULTI having been refused";

bool BeginsWith(const redisReply& reply, std::string_view word) {
  return reply.str != nullptr && std::string_view(reply.str, reply.len).substr(0, word.size()) == word;
}

}  // namespace

Connection::Inside::Inside(redisContext* context, std::shared_ptr<Store> store, std::shared_ptr<Lead> lead,
                           Target target, const Options& options)
    : context_(context),
      binding_(*context_, std::move(store), std::move(lead), std::move(target), options),
      repeating_(binding_.target, options, *context) {}

Connection::Inside::~Inside() { LoseAll(); }

// -- appending

int Connection::Inside::Append(std::string_view packed, const Site& site) {
  binding_.Reach(*context_);
  const auto words = Unpack(packed);
  refused_.reset();
  if (!words || words->empty() || messages_) {  // nothing that we understand, or that has one reply
    unsent_ += packed;
    return REDIS_OK;
  }
  if (IsRefused(*words)) return REDIS_ERR;
  const Kind kind = Classify(*words);
  const bool may_read = kind != Kind::kRead && MayRead(*words, kind);
  const ReadPtr waited = may_read ? WaitNow(site) : nullptr;
  if (refused_) return REDIS_ERR;
  const std::string name = CommandName(*words);
  const bool takes_the_line = TakesTheLine(*words);
  const bool is_reply = name == "CLIENT" && Says(*words, 1, 2, "REPLY");
  if (takes_the_line || is_reply || (name == "MULTI" && !multi_)) Ask();  // behind it no question would be answered
  if (takes_the_line) {
    unsent_ += packed;
    messages_ = true;
    return REDIS_OK;
  }
  ExpectedReply expected;
  expected.is_queued = multi_;
  if (kind == Kind::kTransaction || name == "RESET") {
    AppendTransaction(name, expected, site);
  } else if (binding_.store->records() && (kind == Kind::kWrite || kind == Kind::kMaybe)) {
    AppendWrite(kind, expected, site);
    expected.noted_at = multi_ ? expected.write->NoteInMulti(*words, kind) : expected.write->Note(*words, kind);
  } else if (kind == Kind::kRead) {
    AppendRead(expected, packed, site);
    if (refused_) return REDIS_ERR;
  }
  if (may_read) KeepRead(expected, waited);
  const auto wire = Wire(*words, kind, expected.write);
  unsent_ += wire ? *wire : packed;
  if (binding_.resting.any()) expected.shown = binding_.resting.Answers(*words);
  const bool is_skipped = std::exchange(skips_, false);
  Follow(*words, name);
  if (!silent_ && !skips_ && !is_skipped) {
    batch_.push_back(std::move(expected));
  } else if (expected.write != nullptr) {
    expected.write->Unasked("CLIENT REPLY took the answer to its question away");
  }
  // While the server has a MULTI nothing can be asked: what ends it is not held back for what comes behind.
  return multi_sent_ && !multi_ ? Flush() : REDIS_OK;
}

void Connection::Inside::AppendTransaction(const std::string& name, ExpectedReply& expected, const Site& site) {
  expected.is_queued = false;
  if (name == "MULTI") {
    if (multi_) return;  // nested: the server refuses it, and the EXEC
    expected.is_multi = true;
    multi_ = true;
    multi_sent_ = is_read_ = false;
    multi_moment_ = {};
    // What reads inside it are to see is waited for now: inside, nothing can be asked.
    if (const ReadPtr read = NewRead(site); read != nullptr && read->refusal() == nullptr) multi_reads_.push_back(read);
    return;
  }
  if (name == "EXEC") {
    expected.is_exec = true;
    expected.write = std::exchange(held_, nullptr);
    if (expected.write != nullptr) expected.write->JoinCommitter();
    for (const ReadPtr& read : multi_reads_) {
      // Where it only may have read, its write tells whoever wants to know.
      if (is_read_ || (!multi_moment_.readers.empty() && !read->collects())) expected.reads.push_back(read);
    }
    expected.moment = std::exchange(multi_moment_, {});
  } else {
    expected.dropped = std::exchange(held_, nullptr);
  }
  multi_reads_.clear();
  multi_ = false;
  watching_ = false;
}

void Connection::Inside::AppendWrite(Kind kind, ExpectedReply& expected, const Site& site) {
  if (multi_) {
    if (held_ == nullptr) {
      held_ = NewWrite(Kind::kWrite, site);  // an error of EXEC says that nothing was done
    } else {
      held_->JoinScope(site);
    }
    expected.write = held_;
    return;
  }
  const ScopePtr scope = CurrentScope();
  for (std::size_t place = asked_; place < batch_.size();
       ++place) {  // the commands of one batch and scope are one write
    const ExpectedReply& each = batch_[place];
    if (each.write != nullptr && !each.is_exec && !each.is_queued && each.write->scope() == scope) {
      expected.write = each.write;
      if (kind == Kind::kMaybe) expected.write->NotCertain();
      return;
    }
  }
  expected.write = NewWrite(kind, site);
}

WritePtr Connection::Inside::NewWrite(Kind kind, const Site& site) {
  auto write = std::make_shared<WriteCall>(binding_, site);
  if (kind == Kind::kMaybe) write->NotCertain();
  return write;
}

bool Connection::Inside::IsRefused(const Words& words) {
  if (!binding_.resting.any()) return false;
  refused_ = binding_.resting.Refused(words);
  return refused_.has_value();
}

// Whether a read is not to be sent, whatever the server has: its lineage names the store otherwise (BAR-51).
bool Connection::Inside::IsRefused(const ReadPtr& read) {
  if (read == nullptr || read->refusal() == nullptr) return false;
  refused_ = *read->refusal();
  return true;
}

// A command as it is sent, where a lineage may rest beside its values; nothing: as it stands.
std::optional<std::string> Connection::Inside::Wire(const Words& words, Kind kind, const WritePtr& write) const {
  const LineagePlacement& resting = binding_.resting;
  if (!resting.any()) return std::nullopt;
  if (kind == Kind::kRead) return resting.WireRead(words);
  if (!resting.Writes(words) || (write == nullptr && resting.in_field())) return std::nullopt;
  // Where nothing is recorded no lineage rests; but what looks like an envelope must be in one.
  return resting.WireWrite(words, write == nullptr ? std::string() : write->TextBeside());
}

// What a command does to the connection itself.
void Connection::Inside::Follow(const Words& words, const std::string& name) {
  if (name == "WATCH") watching_ = true;
  if (name == "UNWATCH") watching_ = false;
  repeating_.Said(name);
  if (name != "CLIENT" || !Says(words, 1, 2, "REPLY")) return;
  if (Says(words, 2, 3, "OFF")) silent_ = true;
  if (Says(words, 2, 3, "ON")) silent_ = false;
  if (Says(words, 2, 3, "SKIP")) skips_ = true;
}

// -- telling

// The application gets this reply to a read.
void Connection::Inside::Tell(Read& told, std::string_view packed, const redisReply& reply, bool is_queued) const {
  const auto words = Unpack(packed);
  if (!words || reply.type == REDIS_REPLY_ERROR) return;
  ::antipode::ReadReply came{binding_.server, ValuesIn(*words, reply, is_queued)};
  repeating_.Complete(came, *words, packed, reply, binding_.server->AskTimeout());
  told.Told(came);
}

// A command stands in a MULTI: where its reply will be in that of EXEC.
void Connection::Inside::NoteQueued(const ExpectedReply& expected, const redisReply& reply) {
  if (expected.is_queued && BeginsWith(reply, "QUEUED") && Read::IsHeard(*binding_.store)) {
    queued_noted_.push_back(expected.noted_at);
  }
}

// -- sending

bool Connection::Inside::Asks() const {
  if (multi_ || silent_ || skips_ || !binding_.MayAsk()) return false;
  const bool taker_collects = ReadCall::IsCollected(binding_);
  for (std::size_t place = asked_; place < batch_.size(); ++place) {
    const ExpectedReply& each = batch_[place];
    if (each.write != nullptr && !each.is_queued) return true;
    if (each.is_multi) continue;
    if (taker_collects && !each.moment.readers.empty()) return true;
    if (std::any_of(each.reads.begin(), each.reads.end(), [](const ReadPtr& read) { return read->collects(); })) {
      return true;
    }
  }
  return false;
}

// Puts the question for what was appended since the last one behind it.
void Connection::Inside::Ask() {
  const bool asks = Asks();
  ExpectedReply answer;
  answer.is_answer = true;
  answer.is_queued = !asks;  // then nothing comes: what it serves is settled behind the last reply
  for (std::size_t place = asked_; place < batch_.size(); ++place) {
    const ExpectedReply& each = batch_[place];
    if (each.write != nullptr && !each.is_queued) {
      if (asks) each.write->Asked();
      if (answer.writes.empty() || answer.writes.back() != each.write) answer.writes.push_back(each.write);
    }
    for (const ReadPtr& read : each.reads) {
      if (answer.reads.empty() || answer.reads.back() != read) answer.reads.push_back(read);
    }
  }
  if (asks) unsent_ += kQuestion;
  if (asks || !answer.writes.empty() || !answer.reads.empty()) batch_.push_back(std::move(answer));
  asked_ = batch_.size();
}

int Connection::Inside::Flush() {
  if (unsent_.empty()) return REDIS_OK;
  if (context_->err != 0) {
    Broke();
    return REDIS_ERR;
  }
  Ask();
  if (!WaitForBatch()) return REDIS_ERR;
  multi_sent_ = multi_;
  for (ExpectedReply& each : batch_) {
    if (each.write != nullptr) each.write->JoinCommitter();
    if (each.write != nullptr && !each.is_queued) each.write->Sent();
    expected_.push_back(std::move(each));
  }
  batch_.clear();
  asked_ = 0;
  batch_reads_.clear();
  const std::string data = std::exchange(unsent_, {});
  if (redisAppendFormattedCommand(context_.get(), data.data(), data.size()) != REDIS_OK) {
    Broke();
    return REDIS_ERR;
  }
  return REDIS_OK;
}

// -- receiving

Reply Connection::Inside::Command(std::string_view packed, const Site& site) {
  binding_.Reach(*context_);
  if (const auto words = Unpack(packed); words && !words->empty() && Classify(*words) == Kind::kRead) {
    if (IsRefused(*words)) return Reply(*refused_);
    const bool idle = unsent_.empty() && expected_.empty() && ready_.empty() && context_->err == 0;
    if (idle && !multi_ && !watching_ && !messages_ && !silent_ && !skips_ && !Blocks(*words)) {
      const ReadPtr read = ReadCall::CaseShims(binding_, site);
      if (IsRefused(read)) return Reply(*refused_);
      if (read != nullptr) {
        const auto told = ReadCall::Told(binding_, true, site);
        if (told != nullptr) read->Covers(told);
        if (!read->ids().empty()) until_ = read->deadline();
        Reply reply = ReadShown(*words, packed, *read);
        until_.reset();
        if (!reply) {  // the connection broke
          if (auto late = LateError(*read)) return Reply(*std::move(late));
          return reply;
        }
        if (auto done = read->Finish(); !done.ok()) return Reply(done.error());
        if (told != nullptr) Tell(*told, packed, *reply, false);
        return reply;
      }
    }
  }
  Reply reply;
  if (Append(packed, site) != REDIS_OK) return refused_ ? Reply(*refused_) : Reply();
  static_cast<void>(GetReply(&reply));
  return reply;
}

int Connection::Inside::GetReply(Reply* reply) {
  Reply ignored;
  Reply& wanted = reply != nullptr ? *reply : ignored;
  wanted = Reply();
  const bool broke = ready_.empty() && !late_ && Flush() != REDIS_OK;
  if (ready_.empty() && (broke || late_)) {
    if (late_) wanted = Reply(*std::exchange(late_, std::nullopt));
    return REDIS_ERR;
  }
  return ReadReply(wanted);
}

int Connection::Inside::ReadReply(Reply& reply) {
  Reply taken;
  if (TakeReply(taken) != REDIS_OK) {
    Broke();
    return REDIS_ERR;
  }
  if (!taken || expected_.empty()) {  // a message, or what we did not understand
    if (taken && messages_) messages_ = InMessages(*taken);
    reply = std::move(taken);
    return REDIS_OK;
  }
  ExpectedReply expected = std::move(expected_.front());
  expected_.pop_front();
  if (expected.write != nullptr) expected.write->JoinCommitter();
  Settle(expected, *taken);
  JoinTaker(expected, *taken);
  if (binding_.resting.any()) Show(expected, *taken.get());
  if (taken.IsError()) expected.moment = {};
  const auto past = PastError(expected.moment);  // while what was written with it is on its way still
  ReadAnswers();  // a failure here is ours alone: the application meets it at its next command
  for (const ReadPtr& read : expected.reads) {
    if (auto done = read->Finish(); !done.ok()) {
      reply = Reply(done.error());
      return REDIS_OK;
    }
  }
  if (past) {
    reply = Reply(*past);
    return REDIS_OK;
  }
  if (expected.told != nullptr) Tell(*expected.told, expected.packed, *taken, expected.is_queued);
  reply = std::move(taken);
  return REDIS_OK;
}

// The answers to our questions that come next; false where the connection broke.
bool Connection::Inside::ReadAnswers() {
  while (!expected_.empty() && expected_.front().is_answer) {
    ExpectedReply answer = std::move(expected_.front());
    expected_.pop_front();
    Reply taken;
    if (!answer.is_queued) {
      if (TakeReply(taken) != REDIS_OK) {
        for (const WritePtr& write : answer.writes) write->Answered(nullptr);
        for (const ReadPtr& read : answer.reads) read->Saw(std::nullopt);
        Broke();
        return false;
      }
    }
    for (const WritePtr& write : answer.writes) write->Answered(taken.get());
    const auto now = taken && !taken.IsError() ? ParseReplication(taken.text()) : std::nullopt;
    for (const ReadPtr& read : answer.reads) read->Saw(now);
    Prove(now);
  }
  return true;
}

void Connection::Inside::Settle(ExpectedReply& expected, const redisReply& reply) {
  const bool is_error = reply.type == REDIS_REPLY_ERROR;
  if (expected.dropped != nullptr) expected.dropped->Abandon();
  if (expected.is_multi && is_error) {  // there is no transaction: what follows is done at once
    multi_ = multi_sent_ = false;
    multi_reads_.clear();
    multi_moment_ = {};
    Alone();
  }
  NoteQueued(expected, reply);
  const auto queued = expected.is_exec ? std::exchange(queued_noted_, {}) : std::vector<std::optional<std::size_t>>();
  if (expected.is_multi || expected.dropped != nullptr) {
    queued_.clear();
    queued_noted_.clear();
  }
  if (expected.write == nullptr) return;
  if (expected.is_exec) {
    expected.write->HeardExec(reply, queued);
  } else if (!expected.is_queued) {
    expected.write->Heard(reply, expected.noted_at);
  } else if (!is_error && !BeginsWith(reply, "QUEUED")) {
    expected.write->Unasked(kRefusedMulti);
  }
}

// The write that was appended behind a MULTI that is now refused. Its EXEC asks for its position; nobody does where it
// has none.
void Connection::Inside::Alone() {
  for (const std::deque<ExpectedReply>* each : {&expected_, &batch_}) {
    for (const ExpectedReply& next : *each) {
      if (next.is_exec) return;
      if (next.dropped == nullptr) continue;
      next.dropped->Unasked(kRefusedMulti);
      return;
    }
  }
  if (held_ != nullptr) std::exchange(held_, nullptr)->Unasked(kRefusedMulti);  // another transaction is another write
}

// Makes a reply what the application is to get, and tells whoever wants to know what rested beside it.
void Connection::Inside::Show(const ExpectedReply& expected, redisReply& reply) {
  Beside beside;
  bool shown = !expected.shown.is_plain();
  if (expected.is_queued && reply.type == REDIS_REPLY_STATUS && BeginsWith(reply, "QUEUED")) {
    queued_.push_back(expected.shown);
    return;
  }
  if (expected.is_exec) {
    const std::vector<Shown> queued = std::exchange(queued_, {});
    if (reply.type != REDIS_REPLY_ARRAY || reply.elements != queued.size()) return;
    for (std::size_t place = 0; place < queued.size(); ++place) {
      shown = shown || !queued[place].is_plain();
      beside.Add(binding_.resting.Show(queued[place], *reply.element[place]));
    }
  } else {
    beside = binding_.resting.Show(expected.shown, reply);
  }
  if (!shown) return;
  bool is_told = false;
  for (const ReadPtr& read : expected.reads) {
    if (!read->collects()) continue;
    read->SawBeside(beside);
    is_told = true;
  }
  if (!is_told && expected.write != nullptr) expected.write->SawBeside(beside);
}

// Whether the connection is for messages still: not after the last unsubscription.
bool Connection::Inside::InMessages(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_STATUS && BeginsWith(reply, "RESET")) return false;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 3) return true;
  const redisReply* const what = reply.element[0];
  const redisReply* const count = reply.element[2];
  if (what == nullptr || count == nullptr || count->type != REDIS_REPLY_INTEGER || what->str == nullptr) return true;
  return std::string_view(what->str, what->len).find("unsubscribe") == std::string_view::npos || count->integer > 0;
}

// The connection is of no use any more: nobody knows what became of what was sent, but for the replies that were read
// ahead.
void Connection::Inside::Broke() {
  std::size_t kept = 0;
  for (std::size_t left = ready_.size(); left > 0 && kept < expected_.size(); ++kept) {
    if (!expected_[kept].is_answer || !expected_[kept].is_queued) --left;
  }
  LoseAll(kept);
}

void Connection::Inside::LoseAll(std::size_t kept) {
  bool is_unanswered = false;  // whether it is not known if there was a transaction at all
  const std::deque<ExpectedReply> lost(std::make_move_iterator(expected_.begin() + static_cast<std::ptrdiff_t>(kept)),
                                  std::make_move_iterator(expected_.end()));
  expected_.resize(kept);
  for (const ExpectedReply& each : lost) {
    if (each.is_multi) is_unanswered = true;
    if (is_unanswered && each.is_queued && each.write != nullptr) each.write->Sent();
    if (each.dropped != nullptr) each.dropped->Abandon();
    if (each.write != nullptr) each.write->Lost();
    for (const WritePtr& write : each.writes) write->Lost();
  }
  for (ExpectedReply& each : batch_) {
    if (each.dropped != nullptr) each.dropped->Abandon();
    if (each.write != nullptr) each.write->Lost();
  }
  if (held_ != nullptr) held_->Abandon();  // its EXEC was not sent: the server has forgotten it
  held_ = nullptr;
  if (kept == 0) {
    queued_.clear();
    queued_noted_.clear();
  }
  batch_.clear();
  asked_ = 0;
  unsent_.clear();
  batch_reads_.clear();
  multi_reads_.clear();
  multi_moment_ = {};
  multi_ = multi_sent_ = is_read_ = watching_ = messages_ = silent_ = skips_ = false;
}

int Connection::Inside::Reconnect() {
  LoseAll();
  ready_.clear();
  is_late_ = false;
  late_.reset();
  const int done = redisReconnect(context_.get());
  binding_.Reach(*context_);
  repeating_.Reconnected(binding_.target);
  return done;
}

}  // namespace antipode::redis
