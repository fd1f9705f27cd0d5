// Connections that lead elsewhere than the words for them: their server is judged before their first use (BAR-68).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "region.h"

namespace antipode::redis {
namespace {

class OpenedElsewhereTest : public PostsTest {
 protected:
  // One that lists no replicas: readers use what it reaches.
  static Connection Alone(redisContext* context, const Options& options = Options(kStore)) {
    Result<Connection> wrapped = Wrap(context, options);
    if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
    return *std::move(wrapped);
  }

  static int Port(const std::string& server) { return TheLab().server("redis", server).port; }

  // What is written at the primary does not pass while the server that the connection reaches has not got it.
  void IsJudged(Connection& reader, const std::string& server, const std::string& key) {
    Connection writer = Wrapped("a", StoreOptions(kStore).Replicas({Url("a")}));
    TheLab().Partition("redis", server);
    const Lineage written = Written(writer, key);
    EXPECT_FALSE(Look(written, 500ms).satisfied()) << server << " has not got it";
    TheLab().Heal("redis", server);
    const BarrierResult result = Look(written, 60s);
    EXPECT_TRUE(result.satisfied()) << result.Explain();
    EXPECT_EQ(reader.Command("GET %s", key.c_str()).text(), "v");
    const auto& servers = result.store(kStore).servers;
    const bool is_judged = std::any_of(servers.begin(), servers.end(), [&](const ServerResult& each) {
      return each.address == Url(server) && each.verdict == Verdict::kVisible;
    });
    EXPECT_TRUE(is_judged) << result.Explain();
  }
};

// Its own connections have the URL's credentials, and go where it leads.
TEST_F(OpenedElsewhereTest, OneThatWasOpenedElsewhereThanItsUrlSays_BAR_68) {
  Connection reader = Alone(Connect("b1"), Options(kStore).Url(Url("a")));
  IsJudged(reader, "b1", "opened elsewhere than its URL says");
}

TEST_F(OpenedElsewhereTest, OneWhoseWordsWereChangedBeforeTheWrap_BAR_68) {
  redisContext* const context = Connect("b1");
  context->tcp.port = Port("a");
  Connection reader = Alone(context);
  IsJudged(reader, "b1", "changed before the wrap");
}

// It leads there until it is made anew; then where its words say.
TEST_F(OpenedElsewhereTest, OneWhoseWordsWereChangedSince_BAR_68) {
  Connection reader = Alone(Connect("b1"));
  reader.context()->tcp.port = Port("b2");
  reader.Command("GET before");  // looks where it leads
  IsJudged(reader, "b1", "changed since the wrap");
  ASSERT_EQ(reader.Reconnect(), REDIS_OK);
  IsJudged(reader, "b2", "made anew");
}

// All servers may have one port.
TEST_F(OpenedElsewhereTest, OneWhoseNameWasChangedSince_BAR_68) {
  Connection reader = Alone(Connect("b1"));
  free(reader.context()->tcp.host);
  reader.context()->tcp.host = strdup("nowhere.invalid");
  reader.Command("GET before");
  IsJudged(reader, "b1", "its name was changed");
}

TEST_F(OpenedElsewhereTest, OneThatWasMadeAnewAndThenGotAnotherName_BAR_68) {
  Connection reader = Alone(Connect("b1"));
  ASSERT_EQ(reader.Reconnect(), REDIS_OK);
  free(reader.context()->tcp.host);
  reader.context()->tcp.host = strdup("nowhere.invalid");
  reader.Command("GET before");
  IsJudged(reader, "b1", "made anew, and its name was changed");
}

// Where a connection does not say, as one that was made of a descriptor, the URL's word is taken.
TEST_F(OpenedElsewhereTest, OneThatDoesNotSayWhereItLeads_BAR_52) {
  redisContext* const plain = Connect("b1");
  Connection reader = Alone(redisConnectFd(redisFreeKeepFd(plain)), Options(kStore).Url(Url("b1")));
  IsJudged(reader, "b1", "of a descriptor");
}

}  // namespace
}  // namespace antipode::redis
