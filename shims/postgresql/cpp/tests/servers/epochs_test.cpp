// One store in several languages and through failovers; what servers and wraps refuse (spec EPOCH-2, EPOCH-5, EPOCH-23,
// EPOCH-26, EPOCH-28, EPOCH-29, SHIM-3, SHIM-4).
#include <algorithm>
#include <cctype>

#include "antipode/fallback.h"
#include "antipode/logs.h"
#include "antipode/settings.h"
#include "positions.h"
#include "regions.h"

namespace antipode::postgresql::tests {
namespace {

std::string InPython(const std::string& program, const std::vector<std::string>& words) {
  std::vector<std::string> line = {ANTIPODE_PYTHON, "-c", program};
  line.insert(line.end(), words.begin(), words.end());
  std::string said = RunCommand(line);
  while (!said.empty() && std::isspace(static_cast<unsigned char>(said.back())) != 0) said.pop_back();
  return said;
}

constexpr char kPythonWrites[] = R"py(
import sys, antipode, antipode_postgresql, psycopg
url, key = sys.argv[1:]
client = antipode_postgresql.wrap(psycopg.connect(url, autocommit=True), "blog-posts")
with antipode.scope() as scope:
    client.execute("INSERT INTO posts VALUES (%s, 'v')", (key,))
    print(scope.lineage.serialize())
)py";

constexpr char kPythonWaits[] = R"py(
import sys, antipode, antipode_postgresql
text, *replicas = sys.argv[1:]
antipode_postgresql.register("blog-posts", replicas=replicas)
result = antipode.barrier(antipode.Lineage.deserialize(text), timeout=20, on_timeout="proceed", on_unproven="proceed")
print(result.satisfied, result)
)py";

void Write(Connection& writer, const std::string& key) {
  const Reply reply = writer.Exec(("INSERT INTO posts VALUES ('" + key + "', 'v')").c_str());
  EXPECT_EQ(reply.status(), PGRES_COMMAND_OK) << PQresultErrorMessage(reply.get());
}

class Epochs : public OnServers {};

TEST_F(Epochs, PythonWritesAndCppWaits) {
  const std::string text = InPython(kPythonWrites, {regions_.Url("a"), "from-python"});
  const Result<Lineage> lineage = Lineage::Deserialize(text);
  ASSERT_TRUE(lineage.ok()) << text;
  const auto store = Register(StoreOptions(kStore).Replicas({regions_.Url("b1"), regions_.Url("b2")}));
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->replicas().size(), 2U);
  EXPECT_TRUE(ComesTo(regions_, *lineage, "from-python"));
  Connection writer = regions_.Wrapped("a");
  const Scope scope;
  Write(writer, "own");
  EXPECT_EQ(PositionIn(scope.lineage()).epoch, PositionIn(*lineage).epoch) << "one epoch, one word, in both languages";
}

TEST_F(Epochs, CppWritesAndPythonWaits) {
  Connection writer = regions_.Wrapped("a");
  const Scope scope;
  Write(writer, "from-cpp");
  const std::string said =
      InPython(kPythonWaits, {scope.lineage().Serialize(), regions_.Url("b1"), regions_.Url("b2")});
  EXPECT_EQ(said.substr(0, 4), "True") << said;
  EXPECT_TRUE(regions_.Shows("b2", "from-cpp"));
}

TEST_F(Epochs, NoMarksAreWrittenTheServersOwnHistoryProvesIt) {  // EPOCH-23
  constexpr char kRows[] = "SELECT coalesce(string_agg(e::text, ';' ORDER BY e::text), '') FROM antipode.epochs AS e";
  Connection writer = regions_.Wrapped("a");
  EXPECT_EQ((*FindStore(kStore))->capabilities().marks, Marks::kNative);
  const Scope scope;
  Write(writer, "first");  // names the epoch, once
  const std::string rows = regions_.Ask("a", kRows);
  for (int number = 0; number < 5; ++number) Write(writer, "more-" + std::to_string(number));
  EXPECT_TRUE(ComesTo(regions_, scope.lineage(), "more-4"));
  EXPECT_EQ(regions_.Ask("a", kRows), rows);
}

TEST_F(Epochs, WhatIsNotThereYetIsWaitedForAndTimesOut) {
  Connection writer = regions_.Wrapped("a");
  regions_.lab().Partition("postgresql", "b2");
  const Scope scope;
  Write(writer, "parted");
  const BarrierResult result = LookAt(scope.lineage(), 300ms);
  EXPECT_FALSE(result.satisfied());
  EXPECT_EQ(result.store(kStore).verdict, Verdict::kTimedOut) << result.Explain();
  regions_.lab().Heal("postgresql");
  Until([&] { return LookAt(scope.lineage(), 1s).satisfied(); });
  EXPECT_TRUE(regions_.Shows("b2", "parted"));
}

TEST_F(Epochs, WithoutRightsPositionsAreGivenAndTheCureIsSaid) {
  regions_.Ask("a", "CREATE ROLE plain LOGIN", "postgres");
  regions_.Ask("a", "GRANT SELECT, INSERT ON posts TO plain");
  std::string lines;
  SetLogSink([&lines](LogLevel, std::string_view line) { lines += std::string(line) + "\n"; });
  {
    Result<Connection> writer = Wrap(regions_.Plain("a", "plain"), StoreOptions(kStore).Replicas({regions_.Url("b1")}));
    ASSERT_TRUE(writer.ok());
    const Scope scope;
    Write(*writer, "without rights");
    const auto epoch = EpochOf(PositionIn(scope.lineage()).epoch);
    ASSERT_TRUE(epoch);
    EXPECT_TRUE(epoch->word.empty());
    EXPECT_TRUE(LookAt(scope.lineage()).satisfied()) << "there is one timeline 1";
  }
  SetLogSink({});
  EXPECT_NE(lines.find("antipode init blog-posts --at URL-OF-THE-PRIMARY --user plain --run"), std::string::npos)
      << lines;
  regions_.Ask("a", "DROP OWNED BY plain", "postgres");
  regions_.Ask("a", "DROP ROLE plain", "postgres");
}

TEST_F(Epochs, ModeOffRecordsNothing) {
  SettingWords words;
  words.mode = Mode::kOff;
  ASSERT_TRUE(Configure(words).ok());
  Connection writer = regions_.Wrapped("a");
  const Scope scope;
  Write(writer, "off");
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_TRUE(scope->pending().empty());
}

TEST_F(Epochs, AClientDoesByTheModeThatALaterWrapGivesItsStore) {  // SHIM-1
  Connection writer = regions_.Wrapped("a", [](Options& options) { options.store.InMode(Mode::kOff); });
  const Scope scope;
  Write(writer, "off");
  EXPECT_TRUE(scope.lineage().empty());
  const Connection other = regions_.Wrapped("a", [](Options& options) { options.store.InMode(Mode::kEnforce); });
  Write(writer, "on");
  EXPECT_FALSE(scope.lineage().empty());
}

TEST_F(Epochs, WrapsThatCannotBeAreRefused) {
  const auto refused = [](PGconn* connection, const Options& options) {
    const Result<Connection> wrapped = Wrap(connection, options);
    return wrapped.ok() ? std::string() : std::string(ErrorName(wrapped.error().code)) + ": " + wrapped.error().message;
  };
  EXPECT_NE(refused(nullptr, "posts").find("not open"), std::string::npos);
  EXPECT_NE(refused(PQconnectdb("host=/nowhere"), "posts").find("not open"), std::string::npos);
  EXPECT_NE(refused(regions_.Plain("a"), StoreOptions("posts").RestIn("field")).find("rest=field"), std::string::npos);
  EXPECT_NE(refused(regions_.Plain("a"), StoreOptions("posts").Replicas({"nonsense://x"})).find("no server's URL"),
            std::string::npos);
  for (const char* text : {"postgresql://app:SECRET@h/?passwort=SECRET", "host=h pasword=SECRET"}) {
    const std::string words = refused(regions_.Plain("a"), StoreOptions("posts").Replicas({text}));
    EXPECT_NE(words.find("no server's URL"), std::string::npos) << words;
    EXPECT_EQ(words.find("SEC"), std::string::npos) << words;
  }
  PGconn* const busy = regions_.Plain("a");
  PQclear(PQexec(busy, "BEGIN"));
  EXPECT_NE(refused(busy, "posts").find("in the middle"), std::string::npos);
}

TEST_F(Epochs, AServerWithoutALogForStandbysIsUnfit) {
  lab::Lab alone(
      {"postgresql"},
      {1,
       {"0ms"},
       {{"postgresql", {{"config", {{"wal_level", "minimal"}, {"max_wal_senders", "0"}}}, {"alone", true}}}}});
  const std::string url =
      "postgresql://app@127.0.0.1:" + std::to_string(alone.server("postgresql", "a").port) + "/app";
  const Result<Connection> refused = Wrap(PQconnectdb(url.c_str()), {"alone"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnfitStore);
  EXPECT_NE(refused.error().message.find("Set wal_level = replica"), std::string::npos);
  Result<Connection> taken = Wrap(PQconnectdb(url.c_str()), StoreOptions("alone").WhenUnfit(OnUnfit::kUnproven));
  ASSERT_TRUE(taken.ok());
  const Scope scope;
  EXPECT_EQ(taken->Exec("CREATE TABLE a (b integer)").status(), PGRES_COMMAND_OK);
  EXPECT_FALSE(scope.lineage().IsComplete({"alone"}));
  EXPECT_TRUE(scope->pending().empty());
}

// Three terms; one connection lives through the promotion of its server.
TEST(Failover, WhatWasLostNeverPasses) {
  const testing::Isolated isolated;
  Regions regions;
  lab::Lab& lab = regions.lab();
  Connection first = regions.Wrapped("a");
  Connection second = regions.Wrapped("b1");
  EXPECT_EQ(second.Exec("SELECT 1").status(), PGRES_TUPLES_OK);
  Lineage kept;
  Lineage lost;
  {
    const Scope scope;
    Write(first, "kept");
    kept = scope.lineage();
  }
  ASSERT_TRUE(ComesTo(regions, kept, "kept"));
  lab.PromoteLosing("postgresql", "b1", [&] {
    const Scope scope;
    Write(first, "lost");
    lost = scope.lineage();
  });
  EXPECT_EQ(PositionIn(lost).epoch, PositionIn(kept).epoch);
  const Scope scope;
  Write(second, "second term");
  const Ordered there = PositionIn(scope.lineage());
  EXPECT_EQ(EpochOf(there.epoch)->timeline, 2U) << there.epoch;
  EXPECT_FALSE(EpochOf(there.epoch)->word.empty());
  EXPECT_NE(there.epoch, PositionIn(kept).epoch);
  Until([&] { return LookAt(scope.lineage(), 5s).satisfied(); });
  EXPECT_TRUE(regions.Shows("b2", "second term"));
  EXPECT_TRUE(LookAt(kept).satisfied());
  const BarrierResult verdict = LookAt(lost, 5s);
  EXPECT_FALSE(verdict.satisfied());
  EXPECT_EQ(verdict.store(kStore).verdict, Verdict::kUnproven) << verdict.Explain();
  EXPECT_FALSE(regions.Shows("b2", "lost"));
  // BAR-46: what the new primary has lost is not read there silently, whatever the barrier says at first.
  const Scope reads(lost);
  for (const auto timeout : {0ms, 1ms, 5000ms}) {
    const auto read = [&] { return second.Exec("SELECT value FROM posts WHERE key = 'lost'").error() == nullptr; };
    const Result<bool> silent = ReadOrFallback(read, read, BarrierOptions().Timeout(timeout));
    EXPECT_TRUE(!silent.ok() || !*silent);
  }
}

}  // namespace
}  // namespace antipode::postgresql::tests
