#include "shim.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "positions.h"

namespace antipode::postgresql {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(1);

using Shared = std::shared_ptr<Look>;

Visibility JudgeOne(const WriteId& id, const ServerState& seen) {
  const Ordered* const version = id.ordered();
  if (version == nullptr || !id.is_position()) return Visibility::Unproven(id.Section() + " is no PostgreSQL position");
  return JudgeAt(version->epoch, version->counter, seen);
}

std::vector<Visibility> JudgeAll(Span<const WriteId> ids, const ServerState& seen) {
  std::vector<Visibility> answers;
  for (const WriteId& id : ids) answers.push_back(JudgeOne(id, seen));
  return answers;
}

std::vector<WantedPosition> WantedOf(Span<const WriteId> ids) {
  std::vector<WantedPosition> wanted;
  for (const WriteId& id : ids) {
    const Ordered* const version = id.ordered();
    if (version == nullptr) continue;
    if (const auto epoch = EpochOf(version->epoch)) wanted.push_back({epoch->timeline, version->counter, epoch->word});
  }
  return wanted;
}

}  // namespace

Capabilities PostgresqlShim::capabilities() const {
  return Capabilities::Positions().BlockingWait(true).Tombstones(true).RestsIn({Rest::kNative}).MarkedBy(
      Marks::kNative);
}

Look& PostgresqlShim::LookAt(Server& server) {
  if (auto* held = std::any_cast<Shared>(&server.session)) {
    (*held)->set_timeout(server.AskTimeout());
    return **held;
  }
  server.session = Renew(server);
  return **std::any_cast<Shared>(&server.session);
}

std::any PostgresqlShim::Renew(const Server& server) {
  Result<Target> target = TargetOf(server.target());
  if (!target.ok()) throw RefusedError{target.error().Words()};
  if (target->several) {
    throw RefusedError{"it names several servers, of which a reader's connection may reach another: name them one by one",
                  UnprovenKind::kUnfit};
  }
  if (target->address != server.address()) {
    throw RefusedError{"by the environment its words lead to " + target->address + " now", UnprovenKind::kUnfit};
  }
  return std::make_shared<Look>(*target, server.store().name(), server.AskTimeout(), unique_timelines_.load());
}

Answers PostgresqlShim::Visible(Span<const WriteId> ids, Server& server) {
  try {
    Look& look = LookAt(server);
    if (!look.relaxed().empty() && !relaxed_durability()) {
      const std::string words = server.address() + " " + NotDurable(look.relaxed());
      return std::vector<Visibility>(ids.size(), Visibility::Unproven(words, UnprovenKind::kUnfit));
    }
    const std::vector<WantedPosition> wanted = WantedOf(ids);
    ServerState seen = look.At(wanted);
    std::vector<Visibility> answers = JudgeAll(ids, seen);
    const bool in_vain = std::any_of(answers.begin(), answers.end(), [](const Visibility& each) {
      return each.verdict == Verdict::kUnproven || each.unknown_epoch;
    });
    if (in_vain && look.ReadMarks()) {  // an operator may have settled its epoch since the rows were read
      seen = look.At(wanted);
      answers = JudgeAll(ids, seen);
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      lives_[server.address()] = look.life();
    }
    server.Applied(look.instance(), seen.EpochNow(), seen.Proved());
    return answers;
  } catch (const UnreachableError& error) {
    return Answers::Unreachable(error.words);
  } catch (const RefusedError& error) {
    return Answers::Refused(error.words, error.kind);
  }
}

Answers PostgresqlShim::Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    server.BeginQuestion();
    Answers answers = Visible(ids, server);
    if (answers.kind() != Answers::Kind::kAnswered || server.Interrupted()) return answers;
    const auto& all = answers.answers();
    const bool some =
        std::any_of(all.begin(), all.end(), [](const Visibility& each) { return each.verdict != Verdict::kNotYet; });
    if (some || deadline - std::chrono::steady_clock::now() <= kPoll) return answers;
    std::this_thread::sleep_for(kPoll);
  }
}

void PostgresqlShim::Close(Server& server) noexcept { server.session.reset(); }

std::string PostgresqlShim::Address(const std::any& target) const {
  const Result<Target> found = TargetOf(target);
  return found.ok() ? found->address : "postgresql";
}

std::optional<PostgresqlShim::KnownServer> PostgresqlShim::FactsOf(const std::string& place) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = facts_.find(place);
  if (found == facts_.end()) return std::nullopt;
  return found->second;
}

void PostgresqlShim::KeepFacts(const std::string& place, const Facts& facts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  facts_[place] = {facts, std::chrono::steady_clock::now()};
}

std::string PostgresqlShim::LifeOf(const std::string& address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = lives_.find(address);
  return found == lives_.end() ? std::string() : found->second;
}

ShimType PostgresqlType() { return ShimType::Of<PostgresqlShim>("postgresql"); }

}  // namespace antipode::postgresql
