// Settings, stores' own, log lines, and the hybrid clock beyond their vectors (CONF, OBS-7, SHIM-25 to SHIM-29).
#include "antipode/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "antipode/logs.h"
#include "antipode/shim/hybrid_clock.h"
#include "environment.h"

namespace antipode::testing {
namespace {

using namespace std::chrono_literals;

TEST(Settings, AreReplacedAtOnceOrNotAtAll_CONF_2) {
  const Isolation isolation;
  const auto before = CurrentSettings();
  SettingWords words;
  words.timeout = 250ms;
  words.sample = 2.0;
  const auto failed = Configure(words);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "Configure(sample): want a number from 0 to 1, and not infinite [AP301]");
  EXPECT_EQ(CurrentSettings(), before);
  words.sample = 0.5;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(CurrentSettings()->timeout, 250ms);
  EXPECT_EQ(before->timeout, 1s);  // whoever holds the old ones keeps them
  SettingWords more;
  more.region = "b";
  ASSERT_TRUE(Configure(more).ok());
  EXPECT_EQ(CurrentSettings()->timeout, 250ms);
  ResetSettings();
  EXPECT_EQ(CurrentSettings()->timeout, 1s);
}

TEST(Settings, AreSeenByOtherThreads_CONF_2) {
  const Isolation isolation;
  SettingWords words;
  words.region = "b";
  std::thread other([] { EXPECT_EQ(CurrentSettings()->region, ""); });
  other.join();
  ASSERT_TRUE(Configure(words).ok());
  std::thread another([] { EXPECT_EQ(CurrentSettings()->region, "b"); });
  another.join();
}

TEST(Settings, OfAStoreAreTheMostCareful_CONF_1_CONF_5_CONF_10) {
  const Isolation isolation(Variables{{"ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS", "300"},
                                      {"ANTIPODE_STORE_BLOG_POSTS_MODE", "dry-run"},
                                      {"ANTIPODE_STORE_BLOG_POSTS_PRIMARY", "redis://a"}});
  EXPECT_TRUE(UnknownVariables().empty());
  EXPECT_EQ(TimeoutOf("blog-posts"), 300ms);
  EXPECT_EQ(TimeoutOf("other"), 1s);
  EXPECT_EQ(TimeoutOf("blog-posts", 20ms), 20ms);
  EXPECT_EQ(ModeOf("blog-posts"), Mode::kDryRun);
  EXPECT_EQ(ModeOf("blog-posts", Mode::kOff), Mode::kOff);
  EXPECT_EQ(ModeOf("other"), Mode::kEnforce);
  EXPECT_EQ(SettingsOfStore("blog-posts").primary, "redis://a");
  SettingWords words;
  words.timeout = 2s;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(TimeoutOf("blog-posts"), 2s);
}

TEST(Settings, OfStoresThatCannotBeReadAreErrors_CONF_3) {
  const Isolation isolation(Variables{{"ANTIPODE_STORE_A_TIMEOUT_MS", "soon"}});
  ASSERT_FALSE(LoadSettings().ok());
  EXPECT_EQ(LoadSettings().error().message, "ANTIPODE_STORE_A_TIMEOUT_MS='soon': want a number [AP301]");
  EXPECT_TRUE(isolation.Said("ERROR ANTIPODE_STORE_A_TIMEOUT_MS='soon': want a number. No lineage is taken or sent"));
}

TEST(Settings, NameTheNearestVariable_CONF_4) {
  const Isolation isolation(Variables{{"ANTIPODE_TIMEOUTMS", "5"}});
  EXPECT_EQ(UnknownVariables().at("ANTIPODE_TIMEOUTMS"), " Did you mean ANTIPODE_TIMEOUT_MS?");
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(Configure(SettingWords()).ok());
  const std::vector<std::string> lines = isolation.lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.find("ANTIPODE_TIMEOUTMS") != std::string::npos; }),
            1) << "and not at every change of the settings";
}

TEST(Settings, WarnOfKeysThatEveryUserMayRead_OBS_14) {
  char path[] = "/tmp/antipode-keys-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << "k1 AAECAwQFBgcICQoLDA0ODw==\n";
  const std::string words = std::string("ANTIPODE_KEYS_FILE=") + path + " may be read by every user of this machine";
  for (const bool is_readable : {false, true}) {
    ASSERT_EQ(chmod(path, is_readable ? 0644 : 0640), 0);
    const Isolation isolation(Variables{{"ANTIPODE_KEYS_FILE", path}});
    EXPECT_EQ(CurrentSettings()->trust, Trust::kKey);
    EXPECT_EQ(isolation.Said(words), is_readable);
  }
  std::remove(path);
}

TEST(Settings, SayWhereTheyCameFromAndShowNoKey_CONF_8_CONF_11) {
  char path[] = "/tmp/antipode-keys-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << "# keys\nk1 AAECAwQFBgcICQoLDA0ODw==\nold AAECAwQFBgcICQoLDA0OEA==\n";
  const Isolation isolation(Variables{{"ANTIPODE_KEYS_FILE", path}});
  EXPECT_EQ(CurrentSettings()->trust, Trust::kKey);
  std::map<std::string, SettingOrigin> origins;
  for (const SettingOrigin& origin : SettingOrigins()) origins.emplace(origin.word, origin);
  EXPECT_EQ(origins.size(), 37U);
  EXPECT_EQ(origins.at("trust").origin, "keys are set");
  EXPECT_EQ(origins.at("keys").value, "k1, old");
  EXPECT_EQ(origins.at("keys").origin, "environment (ANTIPODE_KEYS_FILE)");
  EXPECT_EQ(origins.at("timeout").value, "1000");
  EXPECT_EQ(origins.at("timeout").origin, "default");
  EXPECT_TRUE(IsSaid("keys_file"));
  EXPECT_FALSE(IsSaid("timeout"));
  std::remove(path);
  ResetSettings();
  EXPECT_FALSE(LoadSettings().ok());  // the file is gone
}

TEST(Settings, RefusePeersThatAreNone_TRUST_16) {
  const Isolation isolation;
  SettingWords words;
  words.peers = std::vector<std::string>{"10.0.0.0/8", "not a host"};
  const auto failed = Configure(words);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "ANTIPODE_PEERS: not a name, .suffix, address, range or *: 'not a host' [AP305]");
}

TEST(Logs, SayEachKindOnceAMinuteAndCountTheRest_OBS_7) {
  const Isolation isolation;
  for (int i = 0; i < 3; ++i) logs::Warn("AP403", "kind", "something", "dropped");
  logs::Warn("AP401", "another kind", "else");
  logs::Info("AP507", "informative", "fine");
  EXPECT_EQ(isolation.lines(), (std::vector<std::string>{"WARNING something [AP403] dropped=1", "WARNING else [AP401]",
                                                         "INFO fine [AP507]"}));
}

TEST(Clocks, GrowAmongThreads_SHIM_25_SHIM_29) {
  HybridClock clock;
  std::vector<std::vector<std::uint64_t>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&clock, &mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(clock.Next());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : seen) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 4000U);
}

TEST(Clocks, HaveTheRegionsNumberAndARandomRest_SHIM_29) {
  HybridClock::Options options;
  options.place = 72;
  std::set<std::uint16_t> nodes;
  for (int i = 0; i < 200; ++i) {
    const HybridClock clock(options);
    EXPECT_EQ(clock.node() >> 6, 72);
    nodes.insert(clock.node());
  }
  EXPECT_GT(nodes.size(), 10U);
}

TEST(Clocks, AreAnotherWriterInTheChildOfAFork_SHIM_29_SCOPE_13) {
  HybridClock clock;
  const std::uint16_t mine = clock.node();
  int differing = 0;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(clock.node() == mine ? 1 : 0);
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    differing += WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  EXPECT_GE(differing, 3);  // one in 16,384 draws the same
  EXPECT_EQ(clock.node(), mine);
}

TEST(Clocks, RefuseWhatIsFarAheadAndCountIt_SHIM_27) {
  const Isolation isolation;
  HybridClock clock;
  const std::uint64_t next = clock.Next();
  EXPECT_FALSE(clock.Observe(next + (std::uint64_t{61} * 256000 << 14)));
  EXPECT_EQ(clock.refused(), 1U);
  EXPECT_LT(clock.Next() - next, std::uint64_t{30} * 256000 << 14);
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=implausible", "direction=write"}), 1U);
}

}  // namespace
}  // namespace antipode::testing
