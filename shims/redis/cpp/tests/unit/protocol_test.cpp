// The parts that need no server: messages, INFO's answer, judging, addresses, the table of commands (EPOCH-9 to
// EPOCH-14).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "commands.h"
#include "info.h"
#include "judging.h"
#include "marks.h"
#include "resp.h"
#include "target.h"

namespace antipode::redis {
namespace {

const std::string kIdA(40, 'a');
const std::string kIdB(40, 'b');
const std::string kEpochA(16, 'a');
const std::string kEpochB(16, 'b');

std::string Answer(const std::string& role, const std::string& id, const std::string& more) {
  return "# Replication\r\nrole:" + role + "\r\nmaster_replid:" + id + "\r\n" + more;
}

TEST(Reader, TakesMessagesHoweverTheyAreCut) {
  const std::string all =
      "+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n_\r\n*2\r\n$1\r\nx\r\n*-1\r\n-ERR no\r\n!5\r\nERR x\r\n=5\r\ntxt:y\r\n"
      "%1\r\n$1\r\nk\r\n#t\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n|1\r\n$1\r\na\r\n:1\r\n,1.5\r\n";
  for (std::size_t step = 1; step <= all.size(); ++step) {
    Reader reader;
    std::vector<Value> taken;
    for (std::size_t at = 0; at < all.size(); at += step) {
      reader.Feed(std::string_view(all).substr(at, step));
      while (auto message = reader.Take()) taken.push_back(std::move(*message));
    }
    ASSERT_EQ(taken.size(), 12U) << step;
    EXPECT_EQ(taken[0].text, "OK");
    EXPECT_EQ(taken[1].integer, -7);
    EXPECT_EQ(taken[2].text, std::string("a\r\n", 3));
    EXPECT_EQ(taken[3].kind, Value::Kind::kNull);
    EXPECT_EQ(taken[5].items.at(1).kind, Value::Kind::kNull);
    EXPECT_EQ(taken[6].Code(), "ERR");
    EXPECT_TRUE(taken[7].IsError());
    EXPECT_EQ(taken[8].text, "y");
    EXPECT_EQ(taken[9].kind, Value::Kind::kMap);
    EXPECT_EQ(taken[10].kind, Value::Kind::kPush);
    EXPECT_EQ(taken[11].text, "1.5");  // what came before it as attributes is left out
    EXPECT_TRUE(reader.broken().empty());
  }
}

TEST(Reader, SaysWhatIsNoRespAndTakesNothingMore) {
  for (const std::string text : {"HTTP/1.1 400\r\n", "$x\r\n", "*-2\r\n", "\r\n"}) {
    Reader reader;
    reader.Feed(text);
    EXPECT_FALSE(reader.Take()) << text;
    EXPECT_FALSE(reader.broken().empty()) << text;
  }
}

RC_GTEST_PROP(Reader, UnpacksWhatWasPacked, (const std::vector<std::string>& words)) {
  std::vector<std::string_view> views(words.begin(), words.end());
  const std::string packed = Pack(views);
  const auto unpacked = Unpack(packed);
  RC_ASSERT(unpacked.has_value());
  RC_ASSERT(*unpacked == views);
  RC_ASSERT(!Unpack(packed + "x"));
}

RC_GTEST_PROP(Reader, SurvivesAnyOctets, (const std::string& octets)) {
  Reader reader;
  reader.Feed(octets);
  while (reader.Take()) continue;
  static_cast<void>(Unpack(octets));
}

TEST(Info, APrimaryWithABacklogHasAPosition) {
  const auto now = ParseReplication(Answer("master", kIdA,
                                           "master_replid2:" + kIdB +
                                               "\r\nmaster_repl_offset:9007199254740995\r\nsecond_repl_offset:17\r\n"
                                               "repl_backlog_active:1\r\n"));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->Position(), (Ordered{kEpochA, 9007199254740995U}));
  EXPECT_EQ(now->before, kEpochB);
  EXPECT_EQ(now->before_end, 17U);
}

TEST(Info, WithoutABacklogThereIsNone) {  // EPOCH-5
  const auto now = ParseReplication(
      Answer("master", kIdA, "master_repl_offset:417\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:0\r\n"));
  ASSERT_TRUE(now);
  EXPECT_FALSE(now->Position());
  EXPECT_TRUE(now->before.empty());
}

TEST(Info, AReplicaSaysWhatItHasAppliedAlsoWithItsLinkDown) {
  const auto now = ParseReplication(Answer("slave", kIdA,
                                           "master_link_status:down\r\nslave_repl_offset:163\r\nslave_read_only:1\r\n"
                                           "master_repl_offset:150\r\nrepl_backlog_active:1\r\n"));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->Position(), (Ordered{kEpochA, 163}));
  EXPECT_FALSE(now->link);
  EXPECT_TRUE(now->read_only);
}

TEST(Info, SomethingElseIsNoAnswer) {
  for (const std::string text : {"", "# Replication\r\nrole:master\r\n", "role:master\r\nmaster_replid:short\r\n"}) {
    EXPECT_FALSE(ParseReplication(text)) << text;
  }
  EXPECT_FALSE(ParseReplication(Answer("master", kIdA, "master_repl_offset:x\r\n")));
}

WriteId At(const std::string& epoch, std::uint64_t counter) { return *WriteId::Position("s", epoch, counter); }

ServerState Somewhere() {
  ServerState seen;
  seen.replication.epoch = kEpochA;
  seen.replication.offset = 100;
  seen.replication.backlog = true;
  seen.replication.link = true;
  return seen;
}

TEST(Judging, ByTheServersOwnHistory) {  // EPOCH-9, EPOCH-14
  const ServerState seen = Somewhere();
  EXPECT_EQ(Judge(At(kEpochA, 100), seen).verdict, Verdict::kVisible);
  EXPECT_EQ(Judge(At(kEpochA, 101), seen).verdict, Verdict::kNotYet);
  const Visibility other = Judge(At(kEpochB, 1), seen);
  EXPECT_EQ(other.verdict, Verdict::kNotYet);
  EXPECT_TRUE(other.unknown_epoch);  // EPOCH-12
  EXPECT_EQ(Judge(*WriteId::Make("s", "key", Ordered{"", 1}), seen).verdict, Verdict::kUnproven);
}

TEST(Judging, ByTheHistoryThatItContinuedAndByMarks) {  // EPOCH-10, EPOCH-11
  ServerState seen = Somewhere();
  seen.replication.before = kEpochB;
  seen.replication.before_end = 50;
  EXPECT_EQ(Judge(At(kEpochB, 49), seen).verdict, Verdict::kVisible);
  EXPECT_EQ(Judge(At(kEpochB, 50), seen).verdict, Verdict::kNotYet);
  seen.marks = {{kEpochB, 60}};
  EXPECT_EQ(Judge(At(kEpochB, 60), seen).verdict, Verdict::kVisible);
  EXPECT_EQ(Judge(At(kEpochB, 61), seen).verdict, Verdict::kNotYet);  // no mark of its own epoch yet
  seen.marks = {{kEpochB, 60}, {kEpochA, 90}};
  EXPECT_EQ(Judge(At(kEpochB, 61), seen).verdict, Verdict::kUnproven);
  seen.marks.clear();
  seen.marks_known = false;
  seen.why_no_marks = "why";
  EXPECT_TRUE(Judge(At(kEpochB, 61), seen).unknown_epoch);
}

TEST(Judging, NotByTheWordOnAHistoryWhoseDataMayBeGone) {  // EPOCH-33: a full copy that failed behind its flush
  ServerState seen = Somewhere();
  seen.replication.before = kEpochB;
  seen.replication.before_end = 50;
  seen.replication.backlog = false;
  const Visibility answer = Judge(At(kEpochB, 49), seen);
  EXPECT_EQ(answer.verdict, Verdict::kNotYet);
  EXPECT_TRUE(answer.unknown_epoch);
  EXPECT_EQ(seen.Proved().count(kEpochB), 0U);
}

TEST(Marks, OnlyAPositionAndANumberAreAMark) {
  EXPECT_EQ(PositionOfMark("18446744073709551615 3"), 18446744073709551615U);
  for (const char* text : {"", "5", "5 3 1", "x 3", "-1 3", "18446744073709551616 1"}) {
    EXPECT_FALSE(PositionOfMark(text)) << text;
  }
}

TEST(Targets, HaveAddressesWithoutCredentials) {
  const auto address = [](const std::string& url) {
    const auto target = Target::Parse(url);
    return target.ok() ? target->Address() : target.error().message;
  };
  EXPECT_EQ(address("redis://app:se%40cret@h:1/2"), "redis://h:1/2");
  EXPECT_EQ(address("redis://h"), "redis://h:6379");
  EXPECT_EQ(address("redis://[::1]:5"), "redis://[::1]:5");
  EXPECT_EQ(address("redis://:secret@"), "redis://localhost:6379");
  EXPECT_EQ(address("unix:///run/redis.sock?db=3"), "unix:///run/redis.sock/3");
  EXPECT_EQ(Target::Parse("redis://app:se%40cret@h:1/2")->password, "se@cret");
  for (const std::string url : {"h:1", "rediss://:secret@h", "redis://:secret@h:x", "redis://:secret@h/x", "unix://"}) {
    const auto target = Target::Parse(url);
    ASSERT_FALSE(target.ok()) << url;
    EXPECT_EQ(target.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(target.error().message.find("secret"), std::string::npos) << target.error().message;
  }
}

TEST(Commands, AreOfTheKindThatTheirWordsSay) {
  EXPECT_EQ(Classify({"set", "k", "v"}), Kind::kWrite);
  EXPECT_EQ(Classify({"Get", "k"}), Kind::kRead);
  EXPECT_EQ(Classify({"sort", "k"}), Kind::kRead);
  EXPECT_EQ(Classify({"sort", "k", "store", "d"}), Kind::kWrite);
  EXPECT_EQ(Classify({"XGROUP", "CREATE", "s", "g", "$"}), Kind::kWrite);
  EXPECT_EQ(Classify({"FUNCTION", "LIST"}), Kind::kOther);
  EXPECT_EQ(Classify({"memory", "usage", "k"}), Kind::kRead);  // SHIM-44
  EXPECT_EQ(Classify({"MEMORY", "STATS"}), Kind::kOther);
  EXPECT_EQ(Classify({"CLUSTER", "GETKEYSINSLOT", "1", "1"}), Kind::kRead);
  EXPECT_EQ(Classify({"CLUSTER", "INFO"}), Kind::kOther);
  EXPECT_EQ(Classify({"FUNCTION", "LOAD", "x"}), Kind::kWrite);
  EXPECT_EQ(Classify({"EVAL", "return 1", "0"}), Kind::kMaybe);
  EXPECT_EQ(Classify({"NEW.COMMAND"}), Kind::kMaybe);
  EXPECT_EQ(Classify({"exec"}), Kind::kTransaction);
  EXPECT_TRUE(Blocks({"XREAD", "COUNT", "1", "BLOCK", "0"}));
  EXPECT_TRUE(TakesTheLine({"subscribe", "c"}));
}

}  // namespace
}  // namespace antipode::redis
