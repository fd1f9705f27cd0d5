// Cases about reads that wait for what their scope depends on, and about who is told of them (spec BAR-50, BAR-51,
// SHIM-44, SHIM-47, SHIM-48, SHIM-54).
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/shim/read_observer.h"
#include "antipode/testing/isolated.h"
#include "base/observers.h"
#include "base/time.h"
#include "diagnostics/counts.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

using Store = StoreUnderTest;

constexpr Duration kDeadline = std::chrono::milliseconds(500);

void SetTimeout(Duration timeout) {
  SettingWords words;
  words.timeout = timeout;
  Store::Check(Configure(words).ok(), "configure");
}

void SetPolicy(Policy on_unproven) {
  SettingWords words;
  words.on_unproven = on_unproven;
  Store::Check(Configure(words).ok(), "configure");
}

WriteId Renamed(const WriteId& id, const std::string& store) {
  const auto renamed = id.ordered() != nullptr ? WriteId::Make(store, id.key(), *id.ordered())
                                               : WriteId::Make(store, id.key(), *id.opaque());
  Store::Check(renamed.ok(), "a name");
  return *renamed;
}

// Runs a read that is to be no older than this lineage: as a wrap's option says, or as a block of reads does.
ReadUnderTest Behind(const Lineage& lineage, bool by_option, const std::function<ReadUnderTest()>& read) {
  if (by_option) {
    const Scope scope(lineage);
    return read();
  }
  const Reading reading(ReadingOptions{lineage, false});
  return read();
}

bool IsRefused(const ReadUnderTest& read) { return read.error && read.error->code == ErrorCode::kConfiguration; }

bool IsInVain(const ReadUnderTest& read) {
  return read.error && (read.error->code == ErrorCode::kTimedOut || read.error->code == ErrorCode::kUnproven);
}

std::string Told(const std::string& way, const ReadUnderTest& read) {
  return way + ": " + (read.error ? read.error->message : "returned " + read.value.value_or("nothing"));
}

// Whatever may return data waits first, or is refused: no value is older than the scope (SHIM-44, BAR-50).
void UnsureReads(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key, "0")), "no pass");
  for (const bool by_option : {true, false}) {
    const auto client = store.WrapClient(store.near(), store.replicas(), by_option);
    int number = 0;
    for (const auto& [way, read] : client->Reads()) {
      const std::string value = std::to_string(++number);
      const auto reads = [&, &ask = read] { return ask(key); };
      store.Partition(store.near());
      const Lineage lineage = store.Written(key, value);
      SetTimeout(store.brief);
      const ReadUnderTest early = Behind(lineage, by_option, reads);
      Store::Check(IsRefused(early) || IsInVain(early), Told(way, early));
      store.Heal(store.near());
      SetTimeout(store.patience);
      const ReadUnderTest later = Behind(lineage, by_option, reads);
      Store::Check(IsRefused(early) ? IsRefused(later) : later.value == value, Told(way, later));
    }
  }
}

// A wait before a read ends by its deadline also where the server answers nothing (SHIM-47).
void ReadAtAFrozenServer(Store& store) {
  const std::string key = Store::NewKey();
  int number = 0;
  for (const bool by_option : {true, false}) {
    std::vector<std::string> ways;
    for (const auto& each : store.WrapClient(store.far(), store.replicas(), by_option)->Reads()) {
      ways.push_back(each.first);
    }
    for (const std::string& way : ways) {
      SetTimeout(store.patience);
      const Lineage known = store.Written(key, "0");
      Store::Check(store.Passes(known), "no pass");
      const auto client = store.WrapClient(store.far(), store.replicas(), by_option);
      const auto reads = [&] { return client->Reads().at(way)(key); };
      const ReadUnderTest before = Behind(known, by_option, reads);
      if (IsRefused(before)) continue;
      Store::Check(before.value.has_value(), Told(way, before));
      SetTimeout(kDeadline);
      const std::string value = std::to_string(++number);
      store.Freeze(store.far());
      ReadUnderTest frozen;
      Lineage lineage;
      Duration took{};
      try {
        lineage = store.Written(key, value);
        const TimePoint began = Clock::now();
        frozen = Behind(lineage, by_option, reads);
        took = Clock::now() - began;
      } catch (...) {
        store.Thaw(store.far());
        throw;
      }
      store.Thaw(store.far());
      Store::Check(IsInVain(frozen), Told(way, frozen));
      Store::Check(took < kDeadline + store.slack, way + ": a hang of " + std::to_string(Seconds(took)) + " s");
      SetTimeout(store.patience);
      store.Until([&] { return store.Judge(lineage, std::chrono::seconds(1)).complete(); }, "it is judged again");
      const auto again = store.WrapClient(store.far(), store.replicas(), by_option);
      const ReadUnderTest later = Behind(lineage, by_option, [&] { return again->Reads().at(way)(key); });
      Store::Check(later.value == value, Told(way, later));
    }
  }
}

// A read whose lineage spells its store otherwise is unproven, whatever the server has (BAR-51).
void MisspeltStore(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage known = store.Written(key, "1");
  Store::Check(store.Passes(known), "no pass");
  std::string other = "_" + store.name;
  std::transform(other.begin(), other.end(), other.begin(), [](unsigned char c) { return std::toupper(c); });
  std::vector<WriteId> misspelt;
  for (const WriteId& each : known.OfStore(store.name)) misspelt.push_back(Renamed(each, other));
  for (const bool by_option : {true, false}) {
    const auto client = store.WrapClient(store.near(), store.replicas(), by_option);
    for (const auto& [way, read] : client->Reads()) {
      const auto reads = [&, &ask = read] { return ask(key); };
      for (const auto policy : {Policy::kRaise, Policy::kAsTimeout}) {
        SetPolicy(policy);
        const ReadUnderTest early = Behind(Lineage(misspelt), by_option, reads);
        const bool is_told = early.error && early.error->code == ErrorCode::kUnproven &&
                             early.error->message_code == "AP107" &&
                             early.error->message.find("\"" + other + "\"") != std::string::npos;
        Store::Check(IsRefused(early) || is_told, Told(way, early));
      }
      SetPolicy(Policy::kProceed);
      for (const Lineage& lineage : {Lineage(misspelt), known}) {
        const ReadUnderTest later = Behind(lineage, by_option, reads);
        Store::Check(IsRefused(later) || later.value == "1", Told(way, later));
      }
      SetPolicy(Policy::kAsTimeout);
    }
  }
}

// What shows a moment from before a write is refused behind it: waiting makes it no newer (SHIM-48).
void PastMoment(Store& store) {
  const std::string key = Store::NewKey();
  Store::Check(store.Passes(store.Written(key, "1")), "no pass");
  for (const bool by_option : {true, false}) {
    const auto client = store.WrapClient(store.near(), store.replicas(), by_option);
    const auto moments = client->PastMoments(key);
    const Lineage lineage = store.Written(key, "2");
    Store::Check(store.Passes(lineage), "no pass");
    for (const auto& [way, fetch] : moments) {
      const ReadUnderTest past = Behind(lineage, by_option, fetch);
      Store::Check(IsRefused(past) || IsInVain(past), Told(way, past));
    }
  }
}

// Counts what an observer is told of reads, in all cases of this process.
class Listener final : public Observer {
 public:
  struct Counts {
    int begun = 0;
    int returned = 0;
    int ended = 0;
  };

  static Counts Heard() {
    static Listener listener;
    static const bool is_added = (AddObserver(listener), true);
    static_cast<void>(is_added);
    return {listener.begun_.load(), listener.returned_.load(), listener.ended_.load()};
  }

  void ReadBegun(const ReadRequest& /*read*/, ReadObservers& observers) override {
    ++begun_;
    observers.push_back(std::make_unique<One>(*this));
  }

 private:
  class One final : public ReadObserver {
   public:
    explicit One(Listener& listener) : listener_(listener) {}
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    ~One() override { ++listener_.ended_; }
    void Returned(const ReadReply& /*reply*/) noexcept override { ++listener_.returned_; }

   private:
    Listener& listener_;
  };

  std::atomic<int> begun_{0};
  std::atomic<int> returned_{0};
  std::atomic<int> ended_{0};
};

// The reads that dry-run has counted of this store so far.
std::uint64_t CountedReads(const std::string& store) {
  std::uint64_t count = 0;
  for (const auto& [counted, number] : counts::Now()) {
    if (std::get<0>(counted) == "reads" && std::get<2>(counted) == store) count += number;
  }
  return count;
}

// A history that is recorded while a case runs.
class RecordedReads {
 public:
  RecordedReads()
      : folder_(std::filesystem::temp_directory_path() /
                ("antipode-reads-" + std::to_string(getpid()) + "-" + Store::NewKey())) {
    Record(folder_.string());
  }
  RecordedReads(const RecordedReads&) = delete;
  RecordedReads& operator=(const RecordedReads&) = delete;
  ~RecordedReads() {
    Record("");
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }

  int Count() const {
    static_cast<void>(FlushHistory(std::chrono::seconds(20)));
    int count = 0;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_, none)) {
      std::ifstream text(file.path());
      for (std::string line; std::getline(text, line);) {
        if (line.find("\"kind\":\"read\"") != std::string::npos) ++count;
      }
    }
    return count;
  }

 private:
  static void Record(const std::string& folder) {
    SettingWords words;
    words.history = folder;
    static_cast<void>(Configure(words));
  }

  const std::filesystem::path folder_;
};

// Each way to read tells each observer, once: dry-run, a history, whoever else; and the block that collects (SHIM-54,
// SHIM-13, REC-12, HIST-28).
void ReadIsTold(Store& store) {
  const std::string key = Store::NewKey();
  const Lineage lineage = store.Written(key, "v");
  Store::Check(store.Passes(lineage), "no pass");
  const auto client = store.WrapClient(store.near(), store.replicas(), false);
  SettingWords words;
  words.mode = Mode::kDryRun;
  Store::Check(Configure(words).ok(), "configure");
  const RecordedReads recorded;
  int surely = 0;
  for (const auto& [way, read] : client->Reads()) {
    const Listener::Counts before = Listener::Heard();
    const std::uint64_t counted = CountedReads(store.name);
    const int noted = recorded.Count();
    Lineage seen;
    ReadUnderTest got;
    {
      const Scope scope(lineage);
      const Reading reading;
      got = read(key);
      seen = reading.lineage();
    }
    if (IsRefused(got)) continue;
    Store::Check(got.value == "v", Told(way, got));
    const Listener::Counts now = Listener::Heard();
    const int begun = now.begun - before.begun;  // none where it may write, as far as the shim knows
    const auto dry_run = CountedReads(store.name) - counted;
    Store::Check(begun <= 1, way + ": an observer is told " + std::to_string(begun) + " times");
    Store::Check(now.returned - before.returned == begun, way + ": what it returned is not told");
    Store::Check(now.ended - before.ended == begun, way + ": its end is not told");
    Store::Check(recorded.Count() - noted == begun, way + ": a history is told otherwise");
    Store::Check(dry_run == static_cast<std::uint64_t>(begun) || dry_run == 0, way + ": dry-run is told otherwise");
    Store::Check(!seen.OfStore(store.name).empty() || !seen.IsComplete(), way + ": a block of reads is told nothing");
    if (begun == 1 && dry_run == 1) ++surely;
  }
  Store::Check(surely > 0, "no way to read is one");
}

}  // namespace

std::vector<Case> CasesOfOwnReads() {
  return {
      {"unsure_reads", kNoQueues, false, UnsureReads},
      {"read_at_a_frozen_server", kNoQueues, false, ReadAtAFrozenServer},
      {"misspelt_store", kNoQueues, false, MisspeltStore},
      {"past_moment", kNoQueues, false, PastMoment},
      {"read_is_told", kNoQueues, false, ReadIsTold},
  };
}

}  // namespace antipode::testing
