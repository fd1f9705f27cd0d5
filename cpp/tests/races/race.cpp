#include "races/race.h"

#include <optional>
#include <utility>

#include "antipode/shim/shim.h"
#include "engine/server_poller.h"
#include "engine/waiting.h"
#include "store/server.h"

namespace antipode {
namespace {

// What the engine's thread does, done by a thread of the test: the members that it needs, by their names.
template <auto server_state, auto server_asker, auto asker_question, auto asker_running>
struct Opened {
  friend ServerState& StateOf(Server& server) { return static_cast<ServerPoller&>(server).*server_state; }
  friend Asker& AskerOf(Server& server) { return static_cast<ServerPoller&>(server).*server_asker; }
  friend std::optional<bool> AskOnce(Asker& asker) { return (asker.*asker_question)(true); }
  friend void KeepFromRunning(Asker& asker) { asker.*asker_running = true; }
};
ServerState& StateOf(Server& server);
Asker& AskerOf(Server& server);
std::optional<bool> AskOnce(Asker& asker);
void KeepFromRunning(Asker& asker);
template struct Opened<&ServerPoller::state_, &ServerPoller::asker_, &Asker::Question, &Asker::running_>;

}  // namespace

namespace testing {
namespace {

const WriteId kWrite = WriteId::Position("log", "e1", 5).value();

class RaceShim final : public Shim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions(); }
  std::string Address(const std::any&) const override { return "b"; }
  Answers Visible(Span<const WriteId> ids, Server& server) override {
    auto* asked = std::any_cast<RaceServer*>(server.target());
    asked->race->Show(*asked);
    server.Applied("i", "e1", {{"e1", 5}});
    return Answers(std::vector<Visibility>(ids.size(), Visibility::Visible()));
  }
};

}  // namespace

std::shared_ptr<Store> MakeRaceStore() {
  return JoinStore(ShimType::Of<RaceShim>("race"), StoreOptions("log")).value();
}

Race::Race(Store& store) : group_(std::make_shared<WaitGroup>(std::chrono::minutes(1), [this] { Wake(); })) {
  const auto shim = std::make_shared<RaceShim>();
  for (RaceServer& each : servers_) {
    each.race = this;
    each.server = std::make_shared<ServerPoller>(store, shim, "b", std::any(&each));
    KeepFromRunning(AskerOf(*each.server));
  }
}

Race::~Race() {
  // They hold the group, and it them.
  for (const RaceServer& each : servers_) StateOf(*each.server).waiters = WaitQueue(false);
}

void Race::Park() {
  WantedWrites wanted;
  for (const RaceServer& each : servers_) wanted.emplace_back(each.server, &kWrite);
  if (!ParkAll(*group_, wanted)) Wake();
}

void Race::Ask(std::size_t which) { AskOnce(AskerOf(*servers_[which].server)); }

void Race::Replace(std::size_t which) {
  RaceServer& server = servers_[which];
  {
    const std::lock_guard<std::mutex> lock(truth_);
    server.replacing = true;
  }
  server.server->Reset();
  const std::lock_guard<std::mutex> lock(truth_);
  server.replacing = false;
  ++server.data;
}

void Race::Show(RaceServer& server) {
  const std::lock_guard<std::mutex> lock(truth_);
  server.shown_from = server.data;
  server.shown_to = server.data + (server.replacing ? 1 : 0);
  bool stands = true;
  for (const RaceServer& each : servers_) {
    stands = stands && each.shown_to >= each.data && each.shown_from <= each.data + (each.replacing ? 1 : 0);
  }
  stood_ = stood_ || stands;
}

bool Race::Stood() {
  const std::lock_guard<std::mutex> lock(truth_);
  return stood_;
}

void Race::Wake() {
  ++wakings_;
  if (!Stood()) never_stood_ = true;
}

bool Race::IsPassed() const {
  for (const PendingWait& need : group_->needs) {
    if (!need.Is(Verdict::kVisible)) return false;
  }
  return true;
}

void Race::GiveUp() {
  const bool was_woken = wakings_ > 0;
  group_->GiveUp();
  over_ = true;
  if (IsPassed()) {
    if (!Stood()) never_stood_ = true;
  } else {
    forgotten_ = was_woken;
  }
}

void Race::Cancel() {
  group_->cancelled = true;
  group_->GiveUp();
  over_ = true;
}

std::string Race::Judge() {
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t which = 0; which < servers_.size(); ++which) {
      if (servers_[which].server->impl().Waiting() > 0) Ask(which);
    }
  }
  if (!over_ && wakings_ == 0) return "it sleeps on though all is there (NobodySleepsOn)";
  if (wakings_ > 1) return "it was released twice (WokenOnce)";
  for (std::size_t which = 0; which < servers_.size(); ++which) {
    const Server& server = *servers_[which].server;
    if (server.impl().Waiting() != 0) return "a server counts who waits, of none";
    Replace(which);
    if (server.impl().Holds("e1", 5)) return "a proof outlives its generation";
  }
  if (!over_) GiveUp();
  if (forgotten_) return "it was released as a pass, which its caller does not see";
  if (never_stood_) return "it passed with proofs that never stood together (PassStood)";
  return {};
}

}  // namespace testing
}  // namespace antipode
