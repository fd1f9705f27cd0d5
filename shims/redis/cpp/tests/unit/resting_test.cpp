// Which keys hold envelopes, which commands concern them, and what goes over the wire (SHIM-34 to SHIM-37).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "antipode/redis.h"
#include "antipode/shim/envelope.h"
#include "glob.h"
#include "resp.h"
#include "resting.h"

namespace antipode::redis {
namespace {

using Keys = std::vector<std::string>;

// The same cases as Python's, which asks a server for them (`test_patterns_are_those_of_keys`).
TEST(Glob, IsThatOfKeys) {
  struct Case {
    std::string pattern;
    Keys yes;
    Keys no;
  };
  const Case cases[] = {{"post:*", {"post:", "post:1", "post:\n1"}, {"post", "xpost:1"}},
                        {"p?st", {"post", "p.st"}, {"pst", "poost"}},
                        {"h[ae]llo", {"hello", "hallo"}, {"hillo"}},
                        {"h[^e]llo", {"hallo"}, {"hello"}},
                        {"h[a-c]llo", {"hbllo"}, {"hdllo"}},
                        {"h[c-a]llo", {"hbllo"}, {"hdllo"}},
                        {R"(a\*b)", {"a*b"}, {"axb"}},
                        {R"([\]x])", {"]", "x"}, {"\\"}},
                        {"a.b+(c)", {"a.b+(c)"}, {"axb+(c)"}},
                        {"*", {"", "é"}, {}},
                        {"a*b*c", {"abc", "a-b-b-c"}, {"abcd", "acb"}},
                        {"[", {"["}, {""}},
                        {"[]", {"[]"}, {"["}},
                        {"[^]x", {"[^]x"}, {"x"}}};
  for (const Case& each : cases) {
    for (const std::string& key : each.yes) EXPECT_TRUE(Glob(each.pattern).Matches(key)) << each.pattern << " " << key;
    for (const std::string& key : each.no) EXPECT_FALSE(Glob(each.pattern).Matches(key)) << each.pattern << " " << key;
  }
}

RC_GTEST_PROP(Glob, TakesAnyPattern, (const std::string& pattern, const std::string& key)) {
  static_cast<void>(Glob(pattern).Matches(key));
  std::string escaped;
  for (const char octet : key) escaped.append({'\\', octet});
  RC_ASSERT(Glob(escaped).Matches(key));
  RC_ASSERT(Glob(escaped + "*").Matches(key + pattern));
}

LineagePlacement Enveloped() { return LineagePlacement(StoreOptions("blog-posts").RestIn("envelope").EnvelopeKeys("post:*")); }

std::vector<std::string> Unpacked(const std::string& packed) {
  const auto words = Unpack(packed);
  return words ? std::vector<std::string>(words->begin(), words->end()) : std::vector<std::string>();
}

// SHIM-36, SHIM-37.
TEST(Envelopes, RefuseWhatWouldSeeTheOctetsInside) {
  const LineagePlacement resting = Enveloped();
  const Words refused[] = {{"APPEND", "post:1", "x"},        {"incr", "post:1"},
                           {"GETRANGE", "post:1", "0", "1"}, {"STRLEN", "post:1"},
                           {"SETBIT", "post:1", "7", "1"},   {"BITOP", "AND", "other", "x", "post:1"},
                           {"LCS", "x", "post:1"},           {"RENAME", "post:1", "other"},
                           {"COPY", "post:1", "other"},      {"SET", "post:1", "v", "ifeq", "x"},
                           {"MSETEX", "1", "post:1", "v"}};
  for (const Words& words : refused) {
    const auto error = resting.Refused(words);
    ASSERT_TRUE(error) << words[0];
    EXPECT_EQ(error->code, ErrorCode::kConfiguration);
    EXPECT_NE(error->message.find("post:1"), std::string::npos) << error->message;
    EXPECT_NE(error->message.find("EnvelopeKeys"), std::string::npos) << error->message;
  }
  const Words passed[] = {{"APPEND", "other", "x"},
                          {"RENAME", "post:1", "post:2"},
                          {"DEL", "post:1"},
                          {"SET", "post:1", "IFEQ"},
                          {"INCR"},
                          {"RENAME", "other", "post:1"}};
  for (const Words& words : passed) EXPECT_FALSE(resting.Refused(words)) << words[0];
}

TEST(Envelopes, CloseTheValuesOfTheirKeysAlone) {
  const LineagePlacement resting = Enveloped();
  const std::string closed = CloseEnvelope("v", "1~a..e.1").value();
  EXPECT_EQ(Unpacked(*resting.WireWrite({"MSET", "other", "v", "post:1", "v"}, "1~a..e.1")),
            (std::vector<std::string>{"MSET", "other", "v", "post:1", closed}));
  EXPECT_EQ(Unpacked(*resting.WireWrite({"SETEX", "post:1", "9", "v"}, "1~a..e.1")),
            (std::vector<std::string>{"SETEX", "post:1", "9", closed}));
  EXPECT_FALSE(resting.WireWrite({"SET", "other", "v"}, "1~a..e.1"));
  EXPECT_FALSE(resting.WireWrite({"SET", "post:1"}, "1~a..e.1"));  // the server says what is wrong with it
  EXPECT_EQ(Unpacked(*resting.WireWrite({"SET", "post:1", "v"}, "")), (std::vector<std::string>{"SET", "post:1", "v"}));
}

using OwnReply = std::unique_ptr<redisReply, void (*)(redisReply*)>;

OwnReply Text(const std::string& octets) {
  auto* const reply = static_cast<redisReply*>(std::calloc(1, sizeof(redisReply)));
  reply->type = REDIS_REPLY_STRING;
  reply->str = static_cast<char*>(std::malloc(octets.size() + 1));
  std::copy(octets.begin(), octets.end(), reply->str);
  reply->str[octets.size()] = '\0';
  reply->len = octets.size();
  return {reply, [](redisReply* each) { freeReplyObject(each); }};
}

// A hash as HGETALL gives it.
OwnReply Pairs(const std::vector<std::string>& texts) {
  auto* const reply = static_cast<redisReply*>(std::calloc(1, sizeof(redisReply)));
  reply->type = REDIS_REPLY_ARRAY;
  reply->elements = texts.size();
  reply->element = static_cast<redisReply**>(std::calloc(texts.size(), sizeof(redisReply*)));
  for (std::size_t place = 0; place < texts.size(); ++place) reply->element[place] = Text(texts[place]).release();
  return {reply, [](redisReply* each) { freeReplyObject(each); }};
}

// SHIM-34, SHIM-35: any value comes back as it was written, also one that was written without the shim.
RC_GTEST_PROP(Envelopes, GiveEveryValueBack, (const std::string& value, bool looks_like_one)) {
  const LineagePlacement resting = Enveloped();
  const std::string given = looks_like_one ? "\xf5" "AE1" + value : value;
  const Words words = {"SET", "post:1", given};
  for (const std::string& text : {std::string(), std::string("1~a..e.1")}) {
    const auto sent = Unpacked(*resting.WireWrite(words, text));
    const auto reply = Text(sent.at(2));
    const Beside beside = resting.Show(resting.Answers({"GET", "post:1"}), *reply);
    RC_ASSERT(std::string(reply->str, reply->len) == given);
    RC_ASSERT(reply->str[reply->len] == '\0');
    RC_ASSERT(beside.lineage.empty() == text.empty());
  }
}

TEST(Field, ChangesHashCommandsAlone) {
  const LineagePlacement resting(StoreOptions("blog-posts").RestIn("field"));
  EXPECT_TRUE(resting.Writes({"hset", "h", "f", "v"}));
  EXPECT_FALSE(resting.Writes({"SET", "h", "v"}));
  EXPECT_FALSE(resting.WireWrite({"HSET", "h", "f", "v"}, ""));
  EXPECT_EQ(Unpacked(*resting.WireWrite({"HDEL", "h", "f"}, "")).at(0), "EVAL");
  EXPECT_EQ(Unpacked(*resting.WireRead({"HVALS", "h"})), (std::vector<std::string>{"HGETALL", "h"}));
  EXPECT_EQ(Unpacked(*resting.WireRead({"HLEN", "h"})).at(0), "EVAL_RO");
  EXPECT_FALSE(resting.WireRead({"GET", "h"}));
}

TEST(Field, LeavesTheValuesOfHvals) {
  const LineagePlacement resting(StoreOptions("blog-posts").RestIn("field"));
  const OwnReply hash = Pairs({"f", "3", "antipode", "1~a..e.1", "g", "7"});
  EXPECT_EQ(resting.Show(resting.Answers({"HVALS", "h"}), *hash).lineage.Serialize(), "1~a..e.1");
  ASSERT_EQ(hash->elements, 2U);
  EXPECT_STREQ(hash->element[0]->str, "3");
  EXPECT_STREQ(hash->element[1]->str, "7");
}

TEST(Field, TakesALongHashInOnePass) {
  const LineagePlacement resting(StoreOptions("blog-posts").RestIn("field"));
  constexpr std::size_t kFields = 200000;
  const OwnReply hash = Pairs(std::vector<std::string>(2 * kFields, "x"));
  const auto begun = std::chrono::steady_clock::now();
  resting.Show(resting.Answers({"HVALS", "h"}), *hash);
  // Far more where each field moves all after it.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  EXPECT_EQ(hash->elements, kFields);
}

}  // namespace
}  // namespace antipode::redis
