#include "envelopes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/shim/envelope.h"
#include "antipode/shim/shim_tools.h"
#include "resp.h"

namespace antipode::redis {
namespace {

// Commands of one key that see or change the octets inside a value.
constexpr std::string_view kRefused[] = {
    "APPEND",   "BITCOUNT", "BITFIELD", "BITFIELD_RO", "BITPOS", "DECR",   "DECRBY",   "DELEX",  "DIGEST", "GETBIT",
    "GETRANGE", "INCR",     "INCRBY",   "INCRBYFLOAT", "INCREX", "SETBIT", "SETRANGE", "STRLEN", "SUBSTR"};
constexpr std::string_view kComparing[] = {"IFEQ", "IFNE", "IFDEQ", "IFDNE"};
constexpr std::string_view kMoving[] = {"RENAME", "RENAMENX", "COPY"};
// Commands that answer with one whole value; `MGET` answers with many, and `SET` with one where it says GET.
constexpr std::string_view kAnswers[] = {"GET", "GETDEL", "GETEX", "GETSET"};

template <std::size_t size>
bool Among(const std::string_view (&words)[size], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsMany(std::string_view name) { return name == "MSET" || name == "MSETNX"; }

// Where a command that writes one whole value has it; 0 for others.
std::size_t PlaceOfValue(std::string_view name) {
  if (name == "SET" || name == "SETNX" || name == "GETSET") return 2;
  return name == "SETEX" || name == "PSETEX" ? 3 : 0;
}

}  // namespace

Envelopes::Envelopes(std::string store, std::string pattern, bool lineage_in)
    : store_(std::move(store)), pattern_(std::move(pattern)), lineage_in_(lineage_in), glob_(pattern_) {}

std::optional<Error> Envelopes::Refused(const Words& words) const {
  const std::string name = CommandName(words);
  const auto key = RefusedKey(name, words);
  if (!key) return std::nullopt;
  return Error{
      ErrorCode::kConfiguration, "AP505",
      name + " cannot be used with '" + std::string(*key) + "': keys that match '" + pattern_ +
          "' hold the value and its lineage in an envelope (RestIn(\"envelope\")). Read the value and SET it, or leave "
          "the key out of EnvelopeKeys"};
}

std::optional<std::string_view> Envelopes::RefusedKey(const std::string& name, const Words& words) const {
  const auto compares = [&] {
    return std::any_of(std::begin(kComparing), std::end(kComparing),
                       [&](std::string_view word) { return Says(words, 3, words.size(), word); });
  };
  std::size_t first = 1;
  std::size_t end = 2;
  std::size_t step = 1;
  if (name == "BITOP") {
    first = 2;
    end = words.size();
  } else if (name == "LCS") {
    end = 3;
  } else if (name == "MSETEX") {
    first = 2;
    end = words.size();
    step = 2;
  } else if (Among(kMoving, name)) {
    if (words.size() < 3 || Matches(words[2])) return std::nullopt;
  } else if (!Among(kRefused, name) && (name != "SET" || !compares())) {
    return std::nullopt;
  }
  for (std::size_t place = first; place < std::min(end, words.size()); place += step) {
    if (Matches(words[place])) return words[place];
  }
  return std::nullopt;
}

bool Envelopes::Writes(const Words& words) const {
  const std::string name = CommandName(words);
  if (const std::size_t value = PlaceOfValue(name); value != 0) return words.size() > value && Matches(words[1]);
  if (!IsMany(name)) return false;
  for (std::size_t place = 1; place < words.size(); place += 2) {
    if (Matches(words[place])) return true;
  }
  return false;
}

Shown Envelopes::Answers(const Words& words) const {
  const std::string name = CommandName(words);
  if (Among(kAnswers, name) || (name == "SET" && Says(words, 3, words.size(), "GET"))) {
    return words.size() > 1 && Matches(words[1]) ? Shown{Shown::How::kValue, {}} : Shown();
  }
  if (name != "MGET") return {};
  std::vector<bool> which;
  for (std::size_t place = 1; place < words.size(); ++place) which.push_back(Matches(words[place]));
  const bool any = std::find(which.begin(), which.end(), true) != which.end();
  return any ? Shown{Shown::How::kValues, std::move(which)} : Shown();
}

std::string Envelopes::Closed(const Words& words, std::string_view text) const {
  const std::string name = CommandName(words);
  Words sent = words;
  std::vector<std::string> held;
  held.reserve(words.size());
  const auto close = [&](std::string_view& value) {
    // A lineage's text is ASCII and far below the limit: the wire's own.
    held.push_back(CloseEnvelope(value, text).value());
    value = held.back();
  };
  if (IsMany(name)) {
    for (std::size_t place = 1; place + 1 < sent.size(); place += 2) {
      if (Matches(sent[place])) close(sent[place + 1]);
    }
  } else {
    close(sent[PlaceOfValue(name)]);
  }
  return Pack(sent);
}

Beside Envelopes::Open(const Shown& shown, redisReply& reply) const {
  Beside found;
  if (shown.how == Shown::How::kValue) {
    found.lineage = OpenValue(reply);
  } else if (reply.type == REDIS_REPLY_ARRAY && reply.elements == shown.which.size()) {
    for (std::size_t place = 0; place < reply.elements; ++place) {
      if (shown.which[place]) found.lineage |= OpenValue(*reply.element[place]);
    }
  }
  return found;
}

Lineage Envelopes::OpenValue(redisReply& reply) const {
  if (reply.type != REDIS_REPLY_STRING) return {};  // nil, an error, or SET's OK
  const OpenedEnvelope opened = OpenEnvelope(std::string_view(reply.str, reply.len));
  if (!opened.fault.empty()) {
    CountMalformedAtRest(store_);
    logs::Warn("AP405", "envelope " + store_,
               "a value of " + store_ + " is " + std::string(opened.fault) +
                   ": the application gets it as it stands, and what it depends on is missing.",
               "dropped");
    return lineage_in_ ? Lineage().MarkedIncomplete({store_}) : Lineage();
  }
  Lineage lineage = opened.text ? LineageAtRest(*opened.text, store_, lineage_in_) : Lineage();
  const std::size_t size = opened.value.size();
  if (size != reply.len) {
    std::memmove(reply.str, opened.value.data(), size);
    reply.str[size] = '\0';  // as hiredis ends every string
    reply.len = size;
  }
  return lineage;
}

}  // namespace antipode::redis
