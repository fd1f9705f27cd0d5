// Servers that nobody names: judged as long as a connection of a wrapped client leads there (BAR-62).
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "antipode/scope.h"
#include "antipode/shim/lead.h"
#include "engine/discovery.h"
#include "engine/log_test.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::vector<std::string>;

// A connected socket; its peer can go.
class Connection {
 public:
  Connection() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    Lose();
    close(ends_[0]);
  }

  int descriptor() const { return ends_[0]; }
  int peer() const { return ends_[1]; }
  void Lose() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

  std::shared_ptr<Lead> lead;

 private:
  std::array<int, 2> ends_{-1, -1};
};

// A store whose wrap names one server; others are reached. It is looked at whenever a barrier comes.
class ReachedTest : public EngineTest {
 protected:
  ReachedTest() {
    discovery::refresh.store(Duration::zero());
    discovery::retry.store(Duration::zero());
  }
  ~ReachedTest() override {
    discovery::refresh.store(refresh_);
    discovery::retry.store(retry_);
  }

  template <class T = FakeShim>
  void Register(bool has_list = false) {
    store_ = MakeFakeStore<T>("s", {named_});
    if (has_list) options_.ReplicaTargets({std::any(named_)});
    store_->UseServer(options_, std::any(named_));
  }
  void Reach(Connection& connection, const FakePtr& server) {
    connection.lead = store_->Reach(connection.lead, options_, std::any(server), server->name, connection.descriptor());
  }
  BarrierResult Judge(Duration timeout = 100ms, ::antipode::Reach reach = ::antipode::Reach::kRegion) {
    return Barrier(Lineage(Object("s", "k")), Proceeding(timeout).Reach(reach));
  }
  Names Judged(::antipode::Reach reach = ::antipode::Reach::kRegion) {
    Names names;
    const BarrierResult result = Judge(100ms, reach);
    for (const auto& server : result.store("s").servers) {
      if (!server.left_out) names.push_back(server.address);
    }
    return names;
  }
  Names Left(::antipode::Reach reach = ::antipode::Reach::kRegion) { return Judge(100ms, reach).store("s").LeftOut(); }

  // It is judged, however often the store looks.
  void ExpectJudged(const std::string& name, ::antipode::Reach reach = ::antipode::Reach::kRegion) {
    for (int times = 0; times < 3; ++times) {
      EXPECT_FALSE(Judge(100ms, reach).satisfied());
      EXPECT_THAT(Judged(reach), Contains(name));
    }
  }
  // It is named as left out for a while, and then gone.
  void ExpectLeft(const std::string& name) {
    Until([&] { return Judge(1s).satisfied(); }, 60s);
    const BarrierResult result = Judge(10s);
    EXPECT_FALSE(result.complete());
    EXPECT_THAT(result.store("s").LeftOut(), ElementsAre(name));
    SettingWords words;
    words.left_server = 0ms;
    Set(words);
    EXPECT_TRUE(Judge(10s).complete());
    EXPECT_THAT(Judged(), ElementsAre("named"));
    words.left_server = 60s;
    Set(words);
  }

  const FakePtr named_ = MakeFake("named", Always(Visibility::Visible()));
  const FakePtr old_ = MakeFake("old", Always(Visibility::NotYet()));
  StoreOptions options_{"s"};
  std::shared_ptr<Store> store_;

 private:
  const Duration refresh_ = discovery::refresh.load();
  const Duration retry_ = discovery::retry.load();
};

TEST_F(ReachedTest, AServerIsJudgedAsLongAsAConnectionLeadsThere) {
  Register();
  Connection first;
  Connection second;
  Reach(first, old_);
  Reach(second, old_);
  ExpectJudged("old");
  first.Lose();
  ExpectJudged("old");
  second.Lose();
  ExpectLeft("old");
  EXPECT_TRUE(second.lead->is_over());
  Connection third;
  Reach(third, old_);
  ExpectJudged("old");
}

// BAR-52: its new server joins at once, and the old one leaves.
TEST_F(ReachedTest, AConnectionThatIsMadeAnewElsewhere) {
  Register();
  Connection connection;
  Reach(connection, old_);
  ExpectJudged("old");
  Reach(connection, MakeFake("new", Always(Visibility::NotYet())));
  EXPECT_THAT(Judged(), Contains("new"));
  Until([&] { return Judged() == Names{"named", "new"}; }, 60s);
}

TEST_F(ReachedTest, AConnectionThatIsClosed) {
  Register();
  Connection connection;
  Reach(connection, old_);
  ExpectJudged("old");
  connection.lead.reset();
  ExpectLeft("old");
}

TEST_F(ReachedTest, WhoCannotTellLeadsThere) {
  Register();
  const auto lead = store_->Reach(nullptr, options_, std::any(old_), "old", -1);
  ExpectJudged("old");
}

TEST_F(ReachedTest, AServerThatSomebodyNamesStays) {
  Register();
  Connection connection;
  Reach(connection, named_);
  connection.Lose();
  for (int times = 0; times < 3; ++times) EXPECT_TRUE(Judge().complete());
  EXPECT_THAT(Judged(), ElementsAre("named"));
}

// The wrap of a connection names its server: the application may open another without saying so beforehand.
TEST_F(ReachedTest, WhatAWrapNamesStaysWhereItsConnectionIsClosed) {
  Register();
  auto first = store_->NameServer(options_, std::any(old_), "old");
  auto second = store_->NameServer(options_, std::any(old_), "old");
  first.reset();
  ExpectJudged("old");
  ExpectJudged("old", ::antipode::Reach::kReplica);
  Connection moves;
  moves.lead = store_->NameServer(options_, std::any(old_), "old");
  Reach(moves, old_);
  EXPECT_TRUE(moves.lead->Counts(moves.descriptor() + 1)) << "it is named, whatever its socket";
  Reach(moves, named_);
  ExpectJudged("old");
  Connection other;
  other.lead = std::move(second);
  Reach(other, named_);
  for (int times = 0; times < 3; ++times) EXPECT_THAT(Judged(), Contains("old")) << "a wrap that is gone named it";
  ExpectJudged("old", ::antipode::Reach::kReplica);
}

TEST_F(ReachedTest, WhatAWrapNamesLeavesWhereItsConnectionIsMadeAnewElsewhere) {
  Register();
  Connection connection;
  connection.lead = store_->NameServer(options_, std::any(old_), "old");
  connection.Lose();
  ExpectJudged("old");
  Connection anew;
  anew.lead = std::move(connection.lead);
  Reach(anew, named_);
  ExpectLeft("old");
}

// Nobody names others: no barrier passes on no server at all.
TEST_F(ReachedTest, TheLastServerStays) {
  store_ = JoinStore(ShimType::Of<FakeShim>("fake"), options_).value();
  {
    Connection connection;
    Reach(connection, old_);
    ExpectJudged("old");
  }
  ExpectJudged("old");
  Connection connection;
  Reach(connection, named_);
  ExpectLeft("old");
}

// BAR-22, BAR-54: what its connections reach is asked for reach `replica`; what leaves is named in both.
TEST_F(ReachedTest, AWrapThatNamesTheReadersServers) {
  using R = ::antipode::Reach;
  for (const R reach : {R::kRegion, R::kReplica}) {
    const Isolated isolated;
    options_ = StoreOptions("s");
    Register(true);
    Connection connection;
    Reach(connection, old_);
    EXPECT_TRUE(Judge(10s).complete());
    ExpectJudged("old", R::kReplica);
    connection.Lose();
    Until([&] { return Left(reach) == Names{"old"}; }, 60s);
  }
}

// It names its own, though no reader is there: that no connection is open there takes nothing away.
TEST_F(ReachedTest, AWrapThatNamesTheReadersServersAndItsOwn) {
  Register(true);
  const FakePtr writer = MakeFake("writer", Always(Visibility::Visible()));
  store_->UseServer(options_, std::any(writer));
  Connection connection;
  Reach(connection, writer);
  connection.Lose();
  Until([&] { return Judge(10s).complete() && connection.lead->is_over(); }, 60s);
  for (int times = 0; times < 3; ++times) EXPECT_TRUE(Judge(10s).complete());
}

// BAR-54: readers may still go there; that a wrap with a list reaches it lets no barrier of the region ask it.
TEST_F(ReachedTest, WhatAListTakesAwayIsNamedAlthoughAWriterReachesIt) {
  const auto is_listed = std::make_shared<std::atomic<bool>>(true);
  const FakePtr left = MakeFake("left", Always(Visibility::Visible()));
  options_.ReplicasFrom([is_listed, left, named = named_]() -> Result<Targets> {  // asked until the store has gone
    Targets all{std::any(named)};
    if (*is_listed) all.emplace_back(left);
    return all;
  });
  store_ = JoinStore(ShimType::Of<FakeShim>("fake"), options_).value();
  store_->UseServer(options_, std::any(named_));
  EXPECT_TRUE(Judge(10s).complete());
  *is_listed = false;
  Until([&] { return !Judge(10s).complete(); }, 60s);
  Connection connection;
  Reach(connection, left);
  for (int times = 0; times < 3; ++times) EXPECT_THAT(Left(), ElementsAre("left"));
}

// BAR-35: neither where one joins, nor where one leaves; beside a wrap with a list it is free.
TEST_F(ReachedTest, TheFreePathDoesNotPassOnTheServersOfBefore) {
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  const auto judge = [](std::uint64_t to) {
    const auto log = std::make_shared<FakeLog>();
    log->Move(to);
    return [log](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); };
  };
  named_->Set(judge(9));
  old_->Set(judge(5));
  Register<LogShim>();
  const StoreOptions writes = StoreOptions("s").ReplicaTargets({std::any(named_)});
  Connection elsewhere;
  elsewhere.lead =
      store_->Reach(nullptr, writes, std::any(MakeFake("writer", judge(5))), "writer", elsewhere.descriptor());
  const Scope scope{Lineage(At("s", "e1", 7))};
  const auto asks = [&] {
    const int before = named_->asked;
    return Barrier(Proceeding(100ms)).satisfied() && named_->asked > before;
  };
  const auto is_free = [&] {
    discovery::refresh.store(60s);
    return !asks();
  };
  Until(is_free, 60s);
  Connection connection;
  Reach(connection, old_);
  EXPECT_FALSE(Barrier(Proceeding(100ms)).satisfied());
  old_->Set(judge(9));
  Until(is_free, 60s);
  connection.Lose();
  discovery::refresh.store(Duration::zero());
  Until([&] { return Barrier(Proceeding(1s)).store("s").LeftOut() == Names{"old"}; }, 60s);
}

// BAR-35, BAR-65: by the barrier itself, and by those behind it.
TEST_F(ReachedTest, AServerThatJoinsWhileABarrierWaitsIsJudged) {
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  discovery::refresh.store(60s);
  const auto log = std::make_shared<FakeLog>();
  named_->Set([log](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); });
  Register<LogShim>();
  const Scope scope{Lineage(At("s", "e1", 7))};
  std::optional<bool> is_satisfied;
  std::thread joins([&] {
    Until([&] { return store_->impl().parked() > 0; }, 60s);
    store_->UseServer(options_, std::any(old_));
    log->Move(7);
  });
  is_satisfied = Barrier(Proceeding(1s)).satisfied();
  joins.join();
  EXPECT_FALSE(*is_satisfied);
  EXPECT_FALSE(Barrier(Proceeding(100ms)).satisfied());
}

// BAR-22, BAR-35: the region gains it where the wraps' own, which were the region's, get as many fewer.
TEST_F(ReachedTest, AServerThatAWrapNamesIsJudgedWhereNobodyHadWrapped) {
  SettingWords words;
  words.free_path_ttl = 60s;
  Set(words);
  discovery::refresh.store(60s);
  const auto log = std::make_shared<FakeLog>();
  log->Move(7);
  const Ask judge = [log](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); };
  named_->Set(judge);
  store_ = MakeFakeStore<LogShim>("s", {named_, MakeFake("other", judge)});
  const Scope scope{Lineage(At("s", "e1", 7))};
  EXPECT_TRUE(Barrier(Proceeding(60s)).satisfied());
  const int asked = named_->asked;
  EXPECT_TRUE(Barrier(Proceeding(60s)).satisfied());
  EXPECT_EQ(named_->asked, asked) << "it is free";
  const std::uint64_t before = store_->impl().generation();
  const auto lead = store_->NameServer(options_, std::any(old_), "old");
  EXPECT_GT(store_->impl().generation(), before);
  EXPECT_FALSE(Barrier(Proceeding(100ms)).satisfied());
  EXPECT_THAT(Judged(), ElementsAre("named", "other", "old"));
}

// Lost where the peer has closed it, though octets are there to be read, which stay there.
TEST_F(ReachedTest, ASocketTellsWhetherItLeadsAnywhere) {
  Connection connection;
  const Lead lead(nullptr, connection.descriptor());
  EXPECT_TRUE(lead.IsOpen());
  ASSERT_EQ(write(connection.peer(), "octets", 6), 6);
  EXPECT_TRUE(lead.IsOpen());
  connection.Lose();
  Until([&] { return !lead.IsOpen(); });
  std::array<char, 6> octets{};
  EXPECT_EQ(read(connection.descriptor(), octets.data(), octets.size()), 6);
  EXPECT_FALSE(Lead(nullptr, 1 << 20).IsOpen()) << "no socket has this number";
}

}  // namespace
}  // namespace antipode::testing
