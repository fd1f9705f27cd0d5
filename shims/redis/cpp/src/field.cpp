#include "field.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "antipode/messages.h"
#include "field_script.h"
#include "resp.h"

namespace antipode::redis::field {
namespace {

using How = Shown::How;

// A lineage at rest is at most so long; past that it is marked incomplete.
constexpr std::string_view kMostBytes = "3072";

constexpr std::string_view kWrites[] = {"HSET", "HMSET", "HSETNX", "HINCRBY", "HINCRBYFLOAT", "HDEL"};
// Of these the reply has no lineage.
constexpr std::string_view kParts[] = {"HGET", "HMGET", "HLEN", "HEXISTS", "HSTRLEN", "HRANDFIELD"};

template <std::size_t size>
bool Among(const std::string_view (&words)[size], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsOurs(const redisReply* field) {
  return field != nullptr && field->type == REDIS_REPLY_STRING && std::string_view(field->str, field->len) == kField;
}

// Takes `count` elements out, from this place on.
void TakeOut(redisReply& reply, std::size_t place, std::size_t count) {
  for (std::size_t each = place; each < place + count; ++each) freeReplyObject(reply.element[each]);
  std::copy(reply.element + place + count, reply.element + reply.elements, reply.element + place);
  reply.elements -= count;
}

// Leaves one of every pair: of fields and values, the values.
void KeepValues(redisReply& reply) {
  const std::size_t pairs = reply.elements / 2;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    freeReplyObject(reply.element[2 * pair]);
    reply.element[pair] = reply.element[2 * pair + 1];
  }
  reply.elements = pairs;
}

// Takes our field out of those that stand `step` apart, with its value; gives that.
std::optional<std::string> TakeOurs(redisReply& reply, std::size_t step) {
  for (std::size_t place = 0; place + step <= reply.elements; place += step) {
    if (!IsOurs(reply.element[place])) continue;
    std::optional<std::string> value;
    if (step == 2 && reply.element[place + 1]->str != nullptr) {
      value.emplace(reply.element[place + 1]->str, reply.element[place + 1]->len);
    }
    TakeOut(reply, place, step);
    return value;
  }
  return std::nullopt;
}

}  // namespace

bool Writes(const Words& words) { return words.size() > 1 && Among(kWrites, CommandName(words)); }

bool Reads(const Words& words) { return words.size() > 1 && !Answers(words).is_plain(); }

std::string WireWrite(const Words& words, std::string_view text) {
  Words sent = {"EVAL", kFieldWriteScript, "1", words[1], kField, text, kMostBytes, words[0]};
  sent.insert(sent.end(), words.begin() + 2, words.end());
  return Pack(sent);
}

std::string WireRead(const Words& words) {
  const std::string name = CommandName(words);
  if (name == "HLEN" && words.size() == 2) return Pack({"EVAL_RO", kFieldLengthScript, "1", words[1], kField});
  Words sent = words;
  if (name == "HVALS") sent[0] = "HGETALL";
  return Pack(sent);
}

std::string AskBeside(const Words& words) { return Pack({"HGET", words[1], kField}); }

Shown Answers(const Words& words) {
  const std::string name = CommandName(words);
  if (name == "HGETALL") return {How::kPairs, {}};
  if (name == "HVALS") return {How::kPairValues, {}};
  if (name == "HKEYS") return {How::kNames, {}};
  if (name == "HSCAN") return {Says(words, 2, words.size(), "NOVALUES") ? How::kScanNames : How::kScan, {}};
  return Among(kParts, name) ? Shown{How::kHash, {}} : Shown();
}

Beside Hide(const Shown& shown, redisReply& reply, const std::string& store, bool lineage_in) {
  Beside found;
  if (reply.type == REDIS_REPLY_ERROR || reply.type == REDIS_REPLY_NIL) return found;
  const bool is_array = reply.type == REDIS_REPLY_ARRAY;
  const bool is_whole = shown.how == How::kPairs || shown.how == How::kPairValues;
  if (is_array && is_whole) {
    if (const auto text = TakeOurs(reply, 2)) found.lineage = LineageAtRest(*text, store, lineage_in);
    if (shown.how == How::kPairValues) KeepValues(reply);
    return found;
  }
  if (is_array && shown.how == How::kNames) TakeOurs(reply, 1);
  const bool scans = shown.how == How::kScan || shown.how == How::kScanNames;
  if (is_array && scans && reply.elements == 2 && reply.element[1]->type == REDIS_REPLY_ARRAY) {
    TakeOurs(*reply.element[1], shown.how == How::kScan ? 2 : 1);
  }
  found.missed = lineage_in;
  return found;
}

}  // namespace antipode::redis::field
