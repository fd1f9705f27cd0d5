// Recorded histories of Redis: what commands change and read, and what a replica that lags makes of it, also together
// with a service in Python (HIST-23, HIST-27, HIST-28, HIST-30, HIST-37).
#include <functional>
#include <string>
#include <vector>

#include "antipode/messages.h"
#include "history_test.h"
#include "region.h"

namespace antipode::redis {
namespace {

using testing::History;
using Json = History::Json;
using Command = std::vector<std::string>;

// What a Python service does with a text that came: it reads keys at the replica, behind a barrier or not, and prints
// how many were missing. Arguments: the lab's URLs, then `folder wait text key…`.
constexpr const char* kPythonReads = R"py(
import sys
a, b1, b2, more = sys.argv[1:]
folder, waits, count = more.split(" ")[:3]
import redis, antipode, antipode_redis
antipode.configure(history=folder, region="b")
posts = antipode_redis.wrap(redis.Redis.from_url(b1), store="blog-posts")
missing = 0
for each in more.split(" ")[3:]:
    key, text = each.split("=", 1)
    with antipode.message_scope(text):
        if waits == "1":
            antipode.barrier(timeout=20)
        missing += posts.get(key) is None
print(missing)
)py";

// And one that writes; it prints a text for each key.
constexpr const char* kPythonWrites = R"py(
import sys
a, b1, b2, more = sys.argv[1:]
folder, *keys = more.split(" ")
import redis, antipode, antipode_redis
from antipode.messages import outgoing_message
antipode.configure(history=folder, region="a")
posts = antipode_redis.wrap(redis.Redis.from_url(a), store="blog-posts")
for key in keys:
    with antipode.scope():
        posts.set(key, "written by Python: " + key)
        print(key, outgoing_message())
)py";

class HistoryTest : public PostsTest {
 protected:
  void SetUp() override {
    PostsTest::SetUp();
    ASSERT_TRUE(a_.Do({"FLUSHALL"}));
    ASSERT_TRUE(Until([&] { return b1_.Do({"DBSIZE"})->integer <= 1; }));
  }
  void TearDown() override {
    TheLab().Heal("redis", "b1");
    TheLab().Lag("redis", "b1", "2ms");
  }

  static Reply Do(Connection& at, const Command& words) {
    std::vector<const char*> arguments;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      arguments.push_back(word.data());
      sizes.push_back(word.size());
    }
    return at.CommandArgv(static_cast<int>(words.size()), arguments.data(), sizes.data());
  }
  static void Append(Connection& at, const std::vector<Command>& commands) {
    for (const Command& words : commands) {
      std::vector<const char*> arguments;
      std::vector<std::size_t> sizes;
      for (const std::string& word : words) {
        arguments.push_back(word.data());
        sizes.push_back(word.size());
      }
      ASSERT_EQ(at.AppendArgv(static_cast<int>(words.size()), arguments.data(), sizes.data()), REDIS_OK);
    }
    for (std::size_t each = 0; each < commands.size(); ++each) {
      Reply reply;
      ASSERT_EQ(at.GetReply(&reply), REDIS_OK);
    }
  }
  static std::string Left() { return OutgoingMessage().value().value_or(""); }
  History::Decided Decided() const { return history_.Decide(ANTIPODE_COMMAND); }
  void ExpectCounted(std::size_t missing, bool waits) const {
    const History::Decided decided = Decided();
    EXPECT_EQ(decided.exit_code, waits ? 2 : 1) << decided.said;  // nobody knows what those saw that found something
    EXPECT_EQ(decided.violations(), missing) << decided.said;
    EXPECT_EQ(decided.said.at("gaps").size(), decided.said.at("unattributed").size()) << decided.said;
    EXPECT_EQ(decided.said.at("gaps").empty(), !waits) << decided.said;
    EXPECT_EQ(missing == 0, waits);
  }

  Plain a_{"a"};
  Plain b1_{"b1"};
  const History history_;
};

class Waiting : public HistoryTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    HistoryTest::SetUp();
    if (GetParam()) {
      TheLab().Lag("redis", "b1", "200ms");
    } else {
      TheLab().Partition("redis", "b1");  // nothing comes, however long the readers take
    }
  }
};

// The number of violations is the run's own.
TEST_P(Waiting, TheStory) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1", Options(kStore).Replicas({Url("b1")}));
  std::size_t missing = 0;
  for (int number = 0; number < 5; ++number) {
    const std::string key = "post:" + std::to_string(number);
    std::string text;
    {
      const Scope scope;
      Do(writer, {"SET", key, "body " + key});
      text = Left();
    }
    const Scope scope = MessageScope(text);
    if (GetParam()) {
      ASSERT_TRUE(Barrier(BarrierOptions().Timeout(20s)).satisfied());
    }
    missing += Do(reader, {"GET", key})->type == REDIS_REPLY_NIL ? 1 : 0;
  }
  ExpectCounted(missing, GetParam());
}

TEST_P(Waiting, AServiceInPythonReads) {
  Connection writer = Wrapped("a");
  std::string more = history_.folder().string() + (GetParam() ? " 1" : " 0") + " 5";
  for (int number = 0; number < 5; ++number) {
    const std::string key = "post:" + std::to_string(number);
    const Scope scope;
    Do(writer, {"SET", key, "written by C++"});
    more += " " + key + "=" + Left();
  }
  const std::string missing = Python(kPythonReads, more);
  ExpectCounted(std::stoul(missing), GetParam());
}

TEST_P(Waiting, AServiceInPythonWrites) {
  Connection reader = Wrapped("b1", Options(kStore).Replicas({Url("b1")}));
  const std::string said = Python(kPythonWrites, history_.folder().string() + " post:1 post:2 post:3");
  std::istringstream lines(said);
  std::size_t missing = 0;
  std::string key;
  for (std::string text; lines >> key >> text;) {
    const Scope scope = MessageScope(text);
    if (GetParam()) {
      ASSERT_TRUE(Barrier(BarrierOptions().Timeout(20s)).satisfied());
    }
    const Reply found = Do(reader, {"GET", key});
    missing += found->type == REDIS_REPLY_NIL ? 1 : 0;
    if (found->type == REDIS_REPLY_STRING) {
      EXPECT_EQ(found.text(), "written by Python: " + key);
    }
  }
  ExpectCounted(missing, GetParam());
}

// A read that waits by itself sees what it waited for; what it covers is no write's position.
TEST_P(Waiting, ReadsThatWaitOrMerge) {
  SettingWords words;
  words.auto_merge = true;
  ASSERT_TRUE(Configure(words).ok());
  Connection writer = Wrapped("a");
  Connection reader =
      Wrapped("b1", Options(StoreOptions(kStore).WaitOnRead(GetParam()).Timeout(20s)).Replicas({Url("b1")}));
  std::string text;
  {
    const Scope scope;
    Do(writer, {"SET", "post:1", "body"});
    text = Left();
  }
  std::size_t missing = 0;
  {
    const Scope scope = MessageScope(text);
    missing = Do(reader, {"GET", "post:1"})->type == REDIS_REPLY_NIL ? 1 : 0;
  }
  for (const Json& read : history_.Lines("read", {"covers"})) EXPECT_TRUE(read.contains("covers"));
  ExpectCounted(missing, GetParam());
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutABarrier, Waiting, ::testing::Bool(),
                         [](const auto& each) { return std::string(each.param ? "with" : "without"); });

// HIST-37: what each write changed, and every line with the position of the write.
TEST_F(HistoryTest, WhatAWriteChanged) {
  struct Case {
    std::vector<Command> commands;
    std::vector<Json> wanted;
  };
  const Json whole{{"key", "k"}, {"there", true}};
  const Json expiring{{"key", "k"}, {"there", true}, {"expires", true}};
  const Json nothing{{"key", ""}, {"nothing", true}};
  const Json any{{"key", ""}, {"any_key", true}};
  const std::vector<Case> cases = {
      {{{"SET", "k", "v"}}, {whole}},
      {{{"set", "k", "v", "ex", "60"}}, {expiring}},
      {{{"SETEX", "k", "60", "v"}}, {expiring}},
      {{{"SET", "k", "v", "NX"}}, {whole}},
      {{{"SET", "old", "v", "NX"}}, {nothing}},
      {{{"SET", "k", "v", "GET"}}, {whole}},
      {{{"SET", "k", "v", "XX", "GET"}}, {{{"key", "k"}}}},
      {{{"SETNX", "old", "v"}}, {nothing}},
      {{{"GETSET", "k", "v"}}, {whole}},
      {{{"MSET", "k", "v", "l", "w"}}, {whole, {{"key", "l"}, {"there", true}}}},
      {{{"DEL", "old", "k"}}, {{{"key", "old"}, {"value", nullptr}}, {{"key", "k"}, {"value", nullptr}}}},
      {{{"DEL", "k"}}, {nothing}},
      {{{"GETDEL", "old"}}, {{{"key", "old"}, {"value", nullptr}}}},
      {{{"INCR", "n"}}, {{{"key", "n"}, {"there", true}}}},
      {{{"HSET", "h", "f", "v"}}, {{{"key", "h"}}}},
      {{{"EXPIRE", "old", "60"}}, {{{"key", "old"}}}},
      {{{"RENAME", "old", "new"}}, {any}},
      {{{"EVAL", "redis.call('set', KEYS[1], 'v')", "1", "k"}}, {any}},
      {{{"SET", "k", "v"}, {"INCR", "n"}}, {whole, {{"key", "n"}, {"there", true}}}},
      {{{"SET", "k", "v"}, {"DEL", "none"}}, {whole}},
      {{{"SET", "k", "v"}, {"INCR", "old"}}, {whole}},  // the second is refused: old is no number
      {{{"SET", "k", "v"}, {"EVAL", "return 1", "0"}}, {any}},
      {{{"MULTI"}, {"SET", "k", "v"}, {"GET", "k"}, {"INCR", "n"}, {"EXEC"}},
       {whole, {{"key", "n"}, {"there", true}}}},
      {{{"MULTI"}, {"SET", "old", "v", "NX"}, {"EXEC"}}, {nothing}},
  };
  Connection client = Wrapped("a");
  for (const Case& each : cases) {
    SCOPED_TRACE(each.commands.front().front() + " of " + std::to_string(each.commands.size()));
    a_.Do({"FLUSHALL"});
    a_.Do({"SET", "old", "old"});
    const History history;
    std::string position;
    {
      const Scope scope;
      Append(client, each.commands);
      position = scope.lineage().Serialize();
    }
    const std::vector<Json> lines = history.Lines("write", {"key", "value", "there", "expires", "any_key", "nothing"});
    EXPECT_EQ(lines, each.wanted);
    for (const Json& line : history.Lines("write", {"identifier"})) EXPECT_EQ(line, (Json{{"identifier", position}}));
  }
}

// HIST-4, HIST-37
TEST_F(HistoryTest, WhatAReadSaw) {
  struct Case {
    std::vector<Command> commands;
    std::vector<Json> wanted;
  };
  const Json found{{"key", "k"}, {"reads_from", "unattributed"}};
  const Json none{{"key", "no"}, {"value", nullptr}};
  const std::vector<Case> cases = {
      {{{"GET", "k"}}, {found}},
      {{{"MGET", "k", "no"}}, {found, none}},
      {{{"EXISTS", "no"}}, {none}},
      {{{"EXISTS", "k"}}, {{{"key", "k"}, {"reads_from", "unattributed"}}}},
      {{{"STRLEN", "k"}}, {{{"key", "k"}, {"reads_from", "unattributed"}}}},
      {{{"HGETALL", "h"}}, {{{"key", "h"}, {"reads_from", "unattributed"}}}},
      {{{"KEYS", "*"}}, {{{"key", ""}, {"reads_from", "unattributed"}}}},
      {{{"GET", "k"}, {"SET", "l", "w"}, {"GET", "no"}}, {found, none}},
      {{{"LLEN", "k"}}, {}},  // refused: it is no list
      {{{"MULTI"}, {"GET", "k"}, {"EXEC"}}, {{{"key", "k"}, {"reads_from", "unattributed"}}}},
  };
  Connection client = Wrapped("a");
  a_.Do({"SET", "k", "v"});
  for (const bool collects : {false, true}) {  // alone, and with the question for what the values depend on
    for (const Case& each : cases) {
      SCOPED_TRACE(each.commands.front().front() + " of " + std::to_string(each.commands.size()));
      const History history;
      {
        const Scope scope;
        std::optional<Reading> reading;
        if (collects) reading.emplace();
        if (each.commands.size() > 1) {
          Append(client, each.commands);
        } else {
          EXPECT_TRUE(Do(client, each.commands.front()));
        }
      }
      EXPECT_EQ(history.Lines("read", {"key", "value", "reads_from"}), each.wanted);
      for (const Json& line : history.Lines("read", {"covers"})) {
        if (each.commands.front().front() != "MULTI") {
          EXPECT_EQ(line.contains("covers"), collects);
        }
      }
    }
  }
}

// The key is told as any other.
TEST_F(HistoryTest, ValuesInEnvelopes) {
  Connection client = Wrapped("a", Options(StoreOptions(kStore).RestIn("envelope").EnvelopeKeys("post:*")));
  {
    const Scope scope;
    Do(client, {"SET", "first", "x"});
    Do(client, {"SET", "post:1", "body"});
    EXPECT_EQ(Do(client, {"GET", "post:1"}).text(), "body");
  }
  EXPECT_NE(b1_.Do({"PING"}).text(), "");
  EXPECT_NE(a_.Get("post:1"), "body");  // it is in an envelope there
  EXPECT_EQ(history_.Lines("write", {"key", "there"}),
            (std::vector<Json>{{{"key", "first"}, {"there", true}}, {{"key", "post:1"}, {"there", true}}}));
  EXPECT_EQ(history_.Lines("read", {"key", "reads_from"}),
            (std::vector<Json>{{{"key", "post:1"}, {"reads_from", "unattributed"}}}));
}

// HIST-27
TEST_F(HistoryTest, AWriteThatWasRefusedIsNone) {
  Connection replica = Wrapped("b1");
  {
    const Scope scope;
    EXPECT_TRUE(Do(replica, {"SET", "k", "v"}).IsError());
  }
  EXPECT_TRUE(history_.Lines("write", {"key"}).empty());
}

TEST_F(HistoryTest, AWriteWhoseAnswerNeverCameIsOfUnknownOutcome) {
  Connection client = Wrapped("a");
  {
    const Scope scope;
    const Reply id = Do(client, {"CLIENT", "ID"});
    Do(client, {"SET", "k", "v"});
    client.SetTimeout({5, 0});
    ASSERT_TRUE(a_.Do({"CLIENT", "KILL", "ID", std::to_string(id->integer)}));
    EXPECT_FALSE(Do(client, {"SET", "k", "w"}));
  }
  EXPECT_EQ(history_.Lines("write", {"key", "there", "outcome"}),
            (std::vector<Json>{{{"key", "k"}, {"there", true}},
                               {{"key", "k"}, {"there", true}, {"outcome", "unknown"}}}));
}

TEST_F(HistoryTest, ReadsOutsideScopesAreNotRecorded) {
  Connection client = Wrapped("a");
  Do(client, {"GET", "k"});
  EXPECT_TRUE(history_.Lines("read", {"key"}).empty());
}

}  // namespace
}  // namespace antipode::redis
