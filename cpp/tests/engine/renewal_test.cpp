// The next connection to a server is opened beside the one that answers (BAR-55, BAR-69).
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "engine/fakes.h"
#include "engine/renewal_age.h"
#include "store/server.h"

namespace antipode::testing {
namespace {

constexpr Duration kLife = 600s;

// Where it leads is looked up when it is opened.
struct Link {
  std::string leads_to;
  std::thread::id opened_by = std::this_thread::get_id();
};

// An address, and what was opened there. A link that nobody has any more is closed.
class Address {
 public:
  using Links = std::vector<std::weak_ptr<Link>>;

  std::shared_ptr<Link> Open(Links Address::*which, const std::string& to) {
    auto link = std::make_shared<Link>(Link{to});
    const std::lock_guard<std::mutex> lock(mutex_);
    (this->*which).push_back(link);
    return link;
  }
  Links Of(Links Address::*which) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return this->*which;
  }
  void LeadTo(std::string value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    leads_to_ = std::move(value);
  }
  std::string leads_to() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return leads_to_;
  }

  std::atomic<bool> holds{true};  // the next link back
  std::atomic<bool> refuses{false};
  std::atomic<bool> was_looked_up{false};  // by the next link, before the address came to lead elsewhere
  std::atomic<int> begun{0};
  Links asked;  // opened by the thread that asks
  Links next;   // opened beside it

 private:
  std::mutex mutex_;
  std::string leads_to_ = "old";
};

std::shared_ptr<Address> address;

class RenewingShim final : public FakeShim {
 public:
  Answers Visible(Span<const WriteId> ids, Server& server) override {
    if (!server.session.has_value()) server.session = address->Open(&Address::asked, address->leads_to());
    const bool is_old = std::any_cast<std::shared_ptr<Link>>(server.session)->leads_to == "old";
    return std::vector(ids.size(), is_old ? Visibility::Visible() : Visibility::NotYet());
  }
  bool Renews() const noexcept override { return true; }
  std::any Renew(const Server& /*server*/) override {
    ++address->begun;
    while (address->holds) std::this_thread::sleep_for(1ms);
    if (address->refuses) throw std::runtime_error("too many connections");
    return address->Open(&Address::next, address->was_looked_up ? "old" : address->leads_to());
  }
};

// A server that shows its writes where a connection leads to the old one.
class RenewalTest : public EngineTest {
 protected:
  RenewalTest() {
    address = std::make_shared<Address>();
    SettingWords words;
    words.reconnect = kLife;
    words.free_path_ttl = 0ms;
    Set(words);
    store_ = MakeFakeStore<RenewingShim>("posts", {MakeFake("vip", Always(Visibility::Visible()))});
    server_ = store_->Servers().front();
    EXPECT_TRUE(Asked());
  }
  ~RenewalTest() override {
    address->holds = false;
    renewal::more_age = Duration::zero();
  }

  // Whether a barrier passes for a write that nobody has asked for.
  static bool Asked(Duration timeout = 30s) {
    static std::atomic<int> number{0};
    return Barrier(Lineage(Object("posts", std::to_string(++number))), Proceeding(timeout)).satisfied();
  }
  // Connections have about so long to live.
  static void GrowOld(Duration left) { renewal::more_age = kLife - left; }
  // The next one is being opened, and held back.
  static void Begin() {
    GrowOld(kLife / 20);
    EXPECT_TRUE(Asked());
    Until([] { return address->begun == 1; });
  }
  static Address::Links Opened() { return address->Of(&Address::asked); }
  static Address::Links Next() { return address->Of(&Address::next); }

  std::shared_ptr<Store> store_;
  std::shared_ptr<Server> server_;
};

// Nobody stands still meanwhile; then the next one answers, and the old one is closed.
TEST_F(RenewalTest, TheOneThatIsThereAnswersUntilTheNextOneStands_BAR_69) {
  Begin();
  for (int times = 0; times < 20; ++times) EXPECT_TRUE(Asked());
  EXPECT_EQ(Opened().size(), 1U);
  EXPECT_EQ(Next().size(), 0U);
  const std::uint64_t generation = server_->impl().generation();
  const std::thread::id asks = Opened().front().lock()->opened_by;
  renewal::more_age = Duration::zero();  // what is opened next is not to be begun by this
  address->holds = false;
  Until([] { return Asked() && Opened().front().expired(); });
  ASSERT_EQ(Next().size(), 1U);
  const auto next = Next().front().lock();
  ASSERT_TRUE(next);
  EXPECT_NE(next->opened_by, asks);
  EXPECT_GT(server_->impl().generation(), generation) << "what the old one proved is dropped (BAR-33)";
  EXPECT_EQ(Opened().size(), 1U);
  EXPECT_EQ(address->begun, 1);
}

// The address leads to another server by then (BAR-33).
TEST_F(RenewalTest, WhatItProvedIsNoAnswerOfTheNextOne_BAR_55) {
  address->LeadTo("new");
  Begin();
  EXPECT_TRUE(Asked()) << "in its time it answers";
  address->holds = false;
  Until([] { return !Asked(50ms); });
}

// However long the next one takes; that is closed when it comes after all.
TEST_F(RenewalTest, BehindItsTimeItAnswersNothing_BAR_69) {
  Begin();
  address->LeadTo("new");
  GrowOld(0s);
  EXPECT_FALSE(Asked(3s));
  EXPECT_TRUE(Opened().front().expired());
  EXPECT_GE(Opened().size(), 2U);
  address->holds = false;
  Until([] { return Next().size() == 1 && Next().front().expired(); });
}

// It stood there while nobody asked, or while the process was paused.
TEST_F(RenewalTest, TheNextOneAnswersNothingBehindItsOwnTime_BAR_69) {
  Begin();
  address->LeadTo("new");
  address->was_looked_up = true;
  GrowOld(0s);
  address->holds = false;
  Until([] { return Next().size() == 1; });
  ASSERT_EQ(Next().size(), 1U);
  EXPECT_FALSE(Asked(3s));
  EXPECT_TRUE(Next().front().expired());
}

// The server answers by the other one (BAR-26); behind that one's time the thread that asks opens one.
TEST_F(RenewalTest, OneThatCannotBeOpenedIsNoSilence_BAR_69) {
  SettingWords words;
  words.replica_out_after = 10ms;
  Set(words);
  address->refuses = true;
  address->holds = false;
  Begin();
  for (int times = 0; times < 20; ++times) EXPECT_TRUE(Asked());
  EXPECT_EQ(server_->impl().Down(), "");
  EXPECT_EQ(address->begun, 1) << "it is not tried again and again";
  EXPECT_EQ(Opened().size(), 1U);
  GrowOld(0s);
  EXPECT_TRUE(Asked());
  EXPECT_GE(Opened().size(), 2U);
}

// The server was given up while it was opened.
TEST_F(RenewalTest, OneThatNobodyWantsAnyMoreIsClosed_BAR_69) {
  Begin();
  std::thread retiring([&] { server_->impl().Retire(); });
  Until([&] { return Opened().front().expired(); });
  address->holds = false;
  retiring.join();
  ASSERT_EQ(Next().size(), 1U);
  EXPECT_TRUE(Next().front().expired());
}

// SCOPE-13: what was being opened is the parent's.
TEST_F(RenewalTest, AForkedChildOpensItsOwn_BAR_69) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers cannot follow threads that begin in a forked child";
#endif
  Begin();
  const pid_t child = fork();
  if (child == 0) {
    renewal::more_age = Duration::zero();
    bool good = Asked();
    GrowOld(kLife / 20);
    address->holds = false;
    good = good && Asked();
    Shutdown();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(Asked());
}

}  // namespace
}  // namespace antipode::testing
