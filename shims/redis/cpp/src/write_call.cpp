#include "write_call.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/settings.h"

namespace antipode::redis {
namespace {

std::string_view TextOf(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

bool BeginsWith(std::string_view text, std::string_view word) { return text.substr(0, word.size()) == word; }

// Errors after which nothing was written, whatever the command.
bool IsRefusal(std::string_view error) {
  for (const std::string_view code : {"NOSCRIPT", "NOPERM", "READONLY", "LOADING", "NOAUTH"}) {
    if (BeginsWith(error, code)) return true;
  }
  return false;
}

// Whether a reply says that something was changed: a DEL of no key says 0.
bool Says(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      return false;
    case REDIS_REPLY_INTEGER:
      return reply.integer != 0;
    case REDIS_REPLY_ARRAY:
      return reply.elements > 0;
    default:
      return reply.len > 0;
  }
}

}  // namespace

WriteCall::WriteCall(Binding& binding, const Site& site)
    : binding_(binding), owners_{{CurrentScope(), CurrentReading(), site}}, writing_(binding.store, {}, site) {}

void WriteCall::JoinScope(const Site& site) {
  writing_.JoinScope(site);
  Own(site);
}

void WriteCall::JoinCommitter() {
  if (!open_ || CurrentScope() == nullptr) return;
  writing_.JoinCommitter();
  Own(owners_.front().site);
}

void WriteCall::Own(const Site& site) {
  Owner now{CurrentScope(), CurrentReading(), site};
  const auto is_now = [&](const Owner& each) { return each.scope == now.scope && each.reading == now.reading; };
  if (std::none_of(owners_.begin(), owners_.end(), is_now)) owners_.push_back(std::move(now));
}

std::string WriteCall::TextBeside() const {
  const bool lineage_out = binding_.options.lineage_out.value_or(true);
  return TextAtRest(writing_.Beside(lineage_out), lineage_out);
}

void WriteCall::SawBeside(const Beside& beside) {
  for (const Owner& owner : owners_) {
    if (owner.reading != nullptr) {
      owner.reading->Saw({}, beside.lineage);
      if (beside.missed) owner.reading->Marked(binding_.name());
    }
    if (owner.scope != nullptr && CurrentSettings()->auto_merge) {
      owner.scope->TransferRead(beside.missed ? beside.lineage.MarkedIncomplete({binding_.name()}) : beside.lineage,
                                owner.site);
    }
  }
}

std::optional<std::size_t> WriteCall::Note(const Words& words, Kind kind) {
  if (writing_.noted() == nullptr) return std::nullopt;
  return commands_.Add(words, kind);
}

std::optional<std::size_t> WriteCall::NoteInMulti(const Words& words, Kind kind) {
  has_unknown_ = true;
  return Note(words, kind);
}

// What it did to which keys, as far as the replies say; before it is known what became of it.
void WriteCall::TellHistory() {
  WriteObserver* const noted = writing_.noted();
  if (noted != nullptr) noted->Changes(has_unknown_ ? std::nullopt : commands_.Changed());
}

void WriteCall::Heard(const redisReply& reply, std::optional<std::size_t> noted) {
  if (noted) commands_.Heard(*noted, reply);
  if (reply.type == REDIS_REPLY_ERROR) {
    // A script is not rolled back: what it wrote before its error stays.
    if (!certain_ && !IsRefusal(TextOf(reply))) happened_ = true;
    return;
  }
  happened_ = true;
  if (Says(reply)) changed_ = true;
}

void WriteCall::HeardExec(const redisReply& reply, const std::vector<std::optional<std::size_t>>& noted) {
  if (reply.type == REDIS_REPLY_ARRAY && reply.elements == noted.size()) {
    has_unknown_ = false;
    for (std::size_t place = 0; place < noted.size(); ++place) {
      if (noted[place]) commands_.Heard(*noted[place], *reply.element[place]);
    }
  }
  if (reply.type == REDIS_REPLY_NIL) return;  // a watched key had changed
  // EXECABORT: nothing of it was done. Another refusal is one of EXEC itself: then it was never a transaction.
  if (reply.type == REDIS_REPLY_ERROR && BeginsWith(TextOf(reply), "EXECABORT")) return;
  happened_ = true;
  if (reply.type == REDIS_REPLY_ARRAY) changed_ = true;
}

void WriteCall::Answered(const redisReply* answer) {
  if (!open_) return;
  if (!happened_) {
    Abandon();
    return;
  }
  open_ = false;
  TellHistory();
  if (!asked_) {
    Incomplete("rights", binding_.why_denied);
  } else if (answer == nullptr) {
    Incomplete("pending", "the connection broke before the write's position came");
  } else if (const std::string unfit = binding_.Unfit(); !unfit.empty()) {
    Incomplete("cluster", unfit);
  } else if (answer->type == REDIS_REPLY_ERROR) {
    const std::string words(TextOf(*answer));
    binding_.Denied(words);
    Incomplete("rights", words);
  } else if (const auto now = ParseReplication(TextOf(*answer)); now) {
    Place(*now);
  } else {
    Incomplete("pending", "INFO replication answered something else");
  }
}

void WriteCall::Place(const Replication& now) {
  if (!now.primary || !now.backlog) {
    Without(now);
    return;
  }
  const Ordered position{now.epoch, now.offset};
  binding_.marker->Wrote(position);
  if (changed_) {
    writing_.Record(position);
  } else {
    // It may have changed nothing: where the store is now covers it all the same.
    writing_.RecordUpperBound(position);
  }
  CoverReads(position);
}

// Of a command that may have read, too: what covers the values.
void WriteCall::CoverReads(const std::optional<Ordered>& position) {
  std::optional<WriteId> id;
  if (position) {
    auto made = WriteId::Position(binding_.name(), position->epoch, position->counter);
    if (made.ok()) id = std::move(made).value();
  }
  for (const Owner& owner : owners_) {
    if (owner.reading == nullptr) continue;
    if (id) {
      owner.reading->Saw({*id});
    } else {
      owner.reading->Marked(binding_.name());
    }
  }
}

void WriteCall::Incomplete(std::string_view reason, std::string detail) {
  writing_.RecordIncomplete(reason, std::move(detail));
  CoverReads(std::nullopt);
}

void WriteCall::Without(const Replication& now) {
  if (now.primary) {
    logs::Warn("AP516", "backlog " + binding_.name(),
               "writes to " + binding_.name() + " get no position and are recorded as incomplete: " +
                   binding_.target.Address() + " has no replica and no backlog yet. Attach a replica.");
    Incomplete("backlog", "the primary has no replication backlog, so its offset stands still");
  } else if (!now.read_only) {
    Incomplete("replica", "a writable replica took it: no replication carries it");
  } else if (certain_) {
    Incomplete("replica", "the server became a replica behind the write");
  } else {
    writing_.Abandon();  // a script that only read, at a server that takes no writes
    CoverReads(now.Position());
  }
}

void WriteCall::Lost() {
  if (!open_) return;
  open_ = false;
  if (sent_) {
    TellHistory();
    writing_.OutcomeUnknown();
  } else {
    writing_.Abandon();
  }
}

void WriteCall::Abandon() {
  if (!std::exchange(open_, false)) return;
  writing_.Abandon();
}

void WriteCall::Unasked(const std::string& why) {
  if (!std::exchange(open_, false)) return;
  TellHistory();
  Incomplete("pending", why);
}

}  // namespace antipode::redis
