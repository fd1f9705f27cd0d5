// Cases about reads that wait for what their scope depends on (spec BAR-50, BAR-51, SHIM-44, SHIM-47, SHIM-48).
#include <algorithm>
#include <cctype>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "base/time.h"
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

}  // namespace

std::vector<Case> CasesOfOwnReads() {
  return {
      {"unsure_reads", kNoQueues, false, UnsureReads},
      {"read_at_a_frozen_server", kNoQueues, false, ReadAtAFrozenServer},
      {"misspelt_store", kNoQueues, false, MisspeltStore},
      {"past_moment", kNoQueues, false, PastMoment},
  };
}

}  // namespace antipode::testing
