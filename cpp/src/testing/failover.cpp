#include "antipode/testing/failover.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/shim/read.h"
#include "antipode/store.h"
#include "antipode/testing/isolated.h"
#include "base/time.h"

namespace antipode::testing {
namespace {

using std::chrono::milliseconds;

// How much longer than its deadline a wait may take on a loaded machine before it counts as a hang.
constexpr Duration kSlack = std::chrono::seconds(3);

// One write: its key and value, and the lineage that it left.
struct FailoverWrite {
  std::string key;
  std::string value;
  Lineage lineage;
};

// One run of the fuzzer on servers of its own.
class FailoverRun {
 public:
  FailoverRun(FailoverDriver& driver, std::uint64_t seed, Tally& tally)
      : driver_(driver), chance_(seed), seed_("seed " + std::to_string(seed) + ": "), tally_(tally) {
    const std::shared_ptr<Store> store = FindStore(driver.store()).value();
    for (const std::string& name : driver.servers()) {
      for (const auto& server : store->Servers()) {
        if (server->address().find(driver.Address(name)) != std::string::npos) servers_[name] = server;
      }
    }
  }

  void Play() {
    Write(chance_.Number(3, 8));
    for (int rounds = chance_.Number(2, 4); rounds > 0; --rounds) {
      for (int faults = chance_.Number(1, 3); faults > 0; --faults) {
        Fault();
        Write(chance_.Number(1, 6));
      }
      SettleMarks();
      Failover();
      Write(chance_.Number(0, 4));
      JudgeSome();
    }
    Finish();
  }

 private:
  // Barriers that wait while something is done to the servers: at each server, for each of some writes.
  class ParkedBarriers {
   public:
    ParkedBarriers(FailoverRun& played, Duration timeout) {
      const auto& all = played.written_;
      const std::size_t count = std::min<std::size_t>(all.size(), 3);
      for (std::size_t place = all.size() - count; place < all.size(); ++place) {
        if (played.Versions(all[place]).empty()) continue;
        for (const auto& [name, server] : played.servers_) {
          threads_.emplace_back([&played, one = all[place], at = name, timeout] { played.Wait(one, at, timeout); });
        }
      }
    }
    ParkedBarriers(const ParkedBarriers&) = delete;
    ParkedBarriers& operator=(const ParkedBarriers&) = delete;
    ~ParkedBarriers() {
      for (std::thread& thread : threads_) thread.join();  // a wait that does not end hangs the fuzzer: a fault, too
    }

   private:
    std::vector<std::thread> threads_;
  };

  std::vector<WriteId> Versions(const FailoverWrite& one) const { return one.lineage.OfStore(driver_.store()); }

  // What happens

  void Fault() {
    switch (chance_.Number(0, 3)) {
      case 0:
        driver_.Lag(AReplica(), milliseconds(chance_.Choose<int>({0, 5, 30})));
        return;
      case 1:
        PauseLink();
        return;
      case 2: {
        const int count = chance_.Number(0, 4);
        const std::string replica = AReplica();
        driver_.RestartReplica(replica, [&] { Write(count); }, chance_.Happens(0.5));
        return;
      }
      default:
        JudgeSome();
    }
  }

  void PauseLink() {
    const std::string replica = AReplica();
    driver_.Cut(replica, chance_);
    Write(chance_.Number(0, 3));
    JudgeSome();
    driver_.Heal(replica, chance_.Happens(0.5));
  }

  void Failover() {
    switch (chance_.Number(0, 4)) {
      case 0:
      case 1:
        LoseAndPromote();
        return;
      case 2:
        Promote();
        return;
      case 3:
        Twice();
        return;
      default: {
        const int count = chance_.Number(1, 5);
        if (!driver_.CrashPrimary([&] { Write(count); })) LoseAndPromote();
      }
    }
  }

  // Nothing is lost on purpose: what is on its way arrives first.
  void Promote() {
    {
      const ParkedBarriers across(*this, std::chrono::seconds(3));
      driver_.Promote(AReplica(), nullptr);
    }
    Rejoin();
  }

  void LoseAndPromote() {
    const std::string old = driver_.primary();
    const std::string target = AReplica();
    if (chance_.Happens(0.5) && !written_.empty()) Judge(written_.back(), target, std::chrono::seconds(2));
    const int count = chance_.Number(6, 12);
    {
      const ParkedBarriers across(*this, std::chrono::seconds(2));
      driver_.Promote(target, [&] {
        for (int number = 0; number < count; ++number) WriteAt(old);
      });
    }
    Rejoin();
  }

  // The adversary: a second promotion with no write between.
  void Twice() {
    if (chance_.Happens(0.5)) {
      Promote();
    } else {
      LoseAndPromote();
    }
    SettleMarks();
    driver_.Promote(AReplica(), nullptr);
    Rejoin();
  }

  // The old primary becomes a replica of the new one, now or after some writes.
  void Rejoin() {
    if (chance_.Happens(0.5)) Write(chance_.Number(1, 3));
    const std::vector<std::string> followers = driver_.replicas();
    for (const std::string& name : driver_.servers()) {
      const bool follows = std::find(followers.begin(), followers.end(), name) != followers.end();
      if (name != driver_.primary() && !follows) driver_.Rejoin(name, chance_.Happens(0.5));
    }
  }

  // Mostly the marks of this epoch get the time that they have in real life, sometimes not.
  void SettleMarks() {
    if (chance_.Happens(0.85)) driver_.SettleMarks();
  }

  std::string AReplica() { return chance_.Choose(driver_.replicas()); }

  void Write(int count) {
    for (; count > 0; --count) WriteAt(driver_.primary());
  }

  void WriteAt(const std::string& server) {
    const std::string number = std::to_string(written_.size());
    FailoverWrite one{"w-" + number, seed_ + number, {}};
    {
      const Scope scope;
      driver_.Write(server, one.key, one.value);
      one.lineage = scope->lineage();
    }
    ++tally_.writes;
    if (Versions(one).empty()) {
      ++tally_.positionless;
      if (one.lineage.IsComplete()) tally_.looked_empty.push_back(seed_ + one.key);
    }
    written_.push_back(std::move(one));
  }

  // Judging

  void JudgeSome() {
    if (written_.empty()) return;
    std::vector<FailoverWrite> chosen;
    for (std::size_t back = std::min<std::size_t>(written_.size(), 4); back > 0; --back) {
      chosen.push_back(written_[written_.size() - back]);
    }
    chosen.push_back(chance_.Choose(written_));
    const std::string name = chance_.Choose(driver_.servers());
    for (const FailoverWrite& one : chosen) Judge(one, name, milliseconds(chance_.Choose<int>({50, 200})));
  }

  std::string About(const FailoverWrite& one, const std::string& name, Verdict verdict, Duration took) const {
    return seed_ + one.key + " (" + one.lineage.Serialize() + ") at " + name + ": " + std::string(ToString(verdict)) +
           " after " + std::to_string(Seconds(took)) + " s";
  }

  // Judges one write at one server, and looks at once whether it is there; nothing where it has no version.
  std::optional<Verdict> Judge(const FailoverWrite& one, const std::string& name, Duration timeout) {
    if (Versions(one).empty()) return std::nullopt;
    const auto before = driver_.History(name);
    const TimePoint began = Clock::now();
    const Verdict verdict = WaitForServer(servers_.at(name), one.lineage, timeout).verdict;
    const Duration took = Clock::now() - began;
    ++tally_.judged[std::string(ToString(verdict))];
    if (took > timeout + kSlack) tally_.hangs.push_back(About(one, name, verdict, took));
    if (verdict == Verdict::kVisible && driver_.Shows(name, one.key, one.value) == false) {
      const auto after = driver_.History(name);
      if (before && before == after) {
        tally_.lost_passed.push_back(About(one, name, verdict, took) + "; it is at " + *after);
      } else {
        ++tally_.judged["replaced while looking"];
      }
    }
    return verdict;
  }

  // One parked barrier, on a thread of its own.
  void Wait(const FailoverWrite& one, const std::string& name, Duration timeout) {
    const TimePoint began = Clock::now();
    const Verdict verdict = WaitForServer(servers_.at(name), one.lineage, timeout).verdict;
    const std::string about = About(one, "the parked " + name, verdict, Clock::now() - began);
    const bool hung = Clock::now() - began > timeout + kSlack;
    bool rash = false;
    if (verdict == Verdict::kUnproven) {
      // What becomes visible within the deadline must not have been called unproven before.
      while (!rash && Clock::now() - began < timeout) {
        rash = driver_.Shows(name, one.key, one.value) == true;
        std::this_thread::sleep_for(milliseconds(10));
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ++parked_["parked " + std::string(ToString(verdict))];
    if (hung) tally_.hangs.push_back(about);
    if (rash) tally_.rash.push_back(about);
  }

  void Finish() {
    driver_.Calm();
    Write(chance_.Number(1, 20));  // the last history may grow past what earlier ones lost
    driver_.SettleMarks();
    driver_.WaitCaughtUp();
    for (const FailoverWrite& one : written_) {
      bool anywhere = false;
      for (const std::string& name : driver_.servers()) {
        const bool there = driver_.Shows(name, one.key, one.value) == true;
        anywhere = anywhere || there;
        const auto verdict = Judge(one, name, milliseconds(500));
        if (!verdict || !there) continue;
        ++tally_.present;
        tally_.present_unproven += *verdict == Verdict::kVisible ? 0 : 1;
      }
      tally_.lost += anywhere ? 0 : 1;
    }
    for (const auto& [what, count] : parked_) tally_.judged[what] += count;
    ++tally_.runs;
  }

  FailoverDriver& driver_;
  Chance chance_;
  const std::string seed_;
  Tally& tally_;
  std::vector<FailoverWrite> written_;
  std::map<std::string, std::shared_ptr<Server>> servers_;
  std::mutex mutex_;  // of what parked barriers find
  std::map<std::string, int> parked_;
};

}  // namespace

std::vector<std::string> Tally::Faults() const {
  std::vector<std::string> faults;
  for (const auto* kind : {&lost_passed, &hangs, &rash, &looked_empty}) {
    faults.insert(faults.end(), kind->begin(), kind->end());
  }
  return faults;
}

double Tally::UnprovenShare() const { return present == 0 ? 0.0 : static_cast<double>(present_unproven) / present; }

std::string Tally::ToString() const {
  char text[512];
  std::snprintf(text, sizeof text,
                "%d runs, %d writes (%d without a version), %d lost\n"
                "  false passes %zu, hangs %zu, unproven though visible in time %zu, lost and looking empty %zu\n"
                "  present at a server %d, of these unproven at the end %d (%.2f %%)\n  judged:",
                runs, writes, positionless, lost, lost_passed.size(), hangs.size(), rash.size(), looked_empty.size(),
                present, present_unproven, 100 * UnprovenShare());
  std::string told = text;
  for (const auto& [what, count] : judged) told += " " + what + " " + std::to_string(count) + ",";
  return told.substr(0, told.size() - 1);
}

Tally RunFailovers(const MakeDriver& make, int runs, std::uint64_t seed,
                   const std::function<void(const std::string&)>& say) {
  Tally tally;
  for (int number = 0; number < runs; ++number) {
    const std::uint64_t own = seed + static_cast<std::uint64_t>(number);
    const Isolated isolated;
    const std::unique_ptr<FailoverDriver> driver = make(own);
    // No exposure: whatever passes was asked for now. And no server is left out of a pass while it is restarted: that
    // is an answer about the server (BAR-26), which would hide the one about the write.
    SettingWords words;
    words.free_path_ttl = Duration::zero();
    words.replica_out_after = std::chrono::seconds(30);
    static_cast<void>(Configure(words).value());
    const std::size_t told = tally.Faults().size();
    FailoverRun(*driver, own, tally).Play();
    if (!say) continue;
    const std::vector<std::string> faults = tally.Faults();
    say("run " + std::to_string(number + 1) + " of " + std::to_string(runs) + " (seed " + std::to_string(own) + "): " +
        std::to_string(tally.lost) + " lost, " + std::to_string(faults.size()) + " faults");
    for (std::size_t place = told; place < faults.size(); ++place) say("  " + faults[place]);
  }
  return tally;
}

Result<void> CheckTally(const Tally& tally, const FailoverBounds& bounds) {
  std::vector<std::string> faults = tally.Faults();
  int answers = 0;
  for (const auto& judged : tally.judged) answers += judged.second;
  if (static_cast<double>(tally.rash.size()) <= bounds.most_rash * answers) {
    for (const std::string& rash : tally.rash) faults.erase(std::find(faults.begin(), faults.end(), rash));
  }
  std::string wrong;
  for (std::size_t place = 0; place < std::min<std::size_t>(faults.size(), 20); ++place) wrong += "\n" + faults[place];
  if (tally.lost == 0) wrong += "\nno write was lost";
  if (tally.judged.find("visible") == tally.judged.end()) wrong += "\nnothing was proved";
  if (bounds.most_unproven && tally.UnprovenShare() > *bounds.most_unproven) wrong += "\ntoo many are unproven";
  if (wrong.empty()) return {};
  return Error{ErrorCode::kUnproven, "AP299", tally.ToString() + wrong};
}

}  // namespace antipode::testing
