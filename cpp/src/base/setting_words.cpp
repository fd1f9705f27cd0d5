#include "base/setting_words.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "antipode/wire.h"
#include "model/text.h"

namespace antipode {
namespace {

// Room for the empty lineage with its mark of incompleteness, in bytes.
constexpr std::int64_t kLeastBudget = 16;
constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();
// Longer durations count as this one: a clock could not hold the time at which they end.
constexpr double kLongestSeconds = 100.0 * 365 * 24 * 3600;

std::string Number(double number) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), number).ptr;
  return std::string(text, end);
}

Complaint Wanted(double least, double most = std::numeric_limits<double>::infinity()) {
  if (std::isinf(most)) return "want a number at least " + Number(least) + ", and not infinite";
  return "want a number from " + Number(least) + " to " + Number(most) + ", and not infinite";
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Duration Seconds(double seconds) {
  const double nanoseconds = std::round(std::min(seconds, kLongestSeconds) * 1e9);
  return Duration(static_cast<std::int64_t>(nanoseconds));
}

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// How one type of setting is read from text, checked and shown.
template <typename T>
struct Kind {
  std::function<Complaint(std::string_view, T&)> read;
  std::function<Complaint(const T&)> check;
  std::function<std::string(const T&)> show;
};

template <typename E>
Kind<E> Choice(std::vector<E> choices) {
  std::string wanted = "want one of ";
  for (const E choice : choices) wanted.append(choice == choices.front() ? "" : ", ").append(ToString(choice));
  const auto check = [choices, wanted](const E& value) -> Complaint {
    for (const E choice : choices) {
      if (choice == value) return std::nullopt;
    }
    return wanted;
  };
  const auto read = [choices, wanted](std::string_view text, E& value) -> Complaint {
    for (const E choice : choices) {
      if (EqualsIgnoringCase(text, ToString(choice))) {
        value = choice;
        return std::nullopt;
      }
    }
    return wanted;
  };
  return {read, check, [](const E& value) { return std::string(ToString(value)); }};
}

Kind<bool> Flag() {
  const auto read = [](std::string_view text, bool& value) -> Complaint {
    const std::string lower = Lower(text);
    value = lower == "1" || lower == "true" || lower == "yes" || lower == "on";
    if (value || lower == "0" || lower == "false" || lower == "no" || lower == "off") return std::nullopt;
    return "want true or false";
  };
  return {read, [](const bool&) -> Complaint { return std::nullopt; },
          [](const bool& value) { return std::string(value ? "true" : "false"); }};
}

// `unit`: what one of the variable's numbers is in seconds.
Kind<Duration> Time(double unit, double least = 0.0, double most = std::numeric_limits<double>::infinity()) {
  const auto wanted = [least, most] { return std::isfinite(most) ? Wanted(least, most) : Wanted(least); };
  const auto check = [=](const Duration& value) -> Complaint {
    return InSeconds(value) < least || InSeconds(value) > most ? wanted() : std::nullopt;
  };
  const auto read = [=](std::string_view text, Duration& value) -> Complaint {
    const auto number = ParseNumber<double>(text);
    if (!number) return "want a number";
    if (!std::isfinite(*number) || *number * unit < least || *number * unit > most) return wanted();
    value = Seconds(*number * unit);
    return std::nullopt;
  };
  return {read, check, [unit](const Duration& value) { return Number(InSeconds(value) / unit); }};
}

Kind<std::int64_t> Count(std::int64_t least, std::int64_t most = kMostCount) {
  const auto check = [least, most](const std::int64_t& value) -> Complaint {
    if (value >= least && value <= most) return std::nullopt;
    return most == kMostCount ? Wanted(static_cast<double>(least))
                              : Wanted(static_cast<double>(least), static_cast<double>(most));
  };
  const auto read = [check](std::string_view text, std::int64_t& value) -> Complaint {
    const auto number = ParseNumber<std::int64_t>(text);
    if (!number) return "want a whole number";
    value = *number;
    return check(value);
  };
  return {read, check, [](const std::int64_t& value) { return std::to_string(value); }};
}

Kind<double> Share() {
  const auto check = [](const double& value) -> Complaint {
    return value >= 0 && value <= 1 ? std::nullopt : Wanted(0, 1);
  };
  const auto read = [check](std::string_view text, double& value) -> Complaint {
    const auto number = ParseNumber<double>(text);
    if (!number) return "want a number";
    value = *number;
    return check(value);
  };
  return {read, check, [](const double& value) { return Number(value); }};
}

Kind<std::vector<std::string>> Names() {
  const auto check = [](const std::vector<std::string>& names) -> Complaint {
    for (const std::string& name : names) {
      if (name.empty()) return "want a list of names";
    }
    return std::nullopt;
  };
  const auto read = [](std::string_view text, std::vector<std::string>& names) -> Complaint {
    names = SplitList(text);
    return std::nullopt;
  };
  return {read, check, [](const std::vector<std::string>& names) { return Joined(names, ","); }};
}

Kind<std::string> Text() {
  const auto read = [](std::string_view text, std::string& value) -> Complaint {
    value = text;
    return std::nullopt;
  };
  return {read, [](const std::string&) -> Complaint { return std::nullopt; },
          [](const std::string& text) { return text; }};
}

Kind<Keys> KeyKind() {
  return {[](std::string_view, Keys&) -> Complaint { return "want a keys file"; },
          [](const Keys&) -> Complaint { return std::nullopt; },
          [](const Keys& keys) { return Joined(keys.ids(), ", "); }};
}

template <typename T>
SettingField Of(std::string name, std::string variable, T Settings::*in_force, std::optional<T> SettingWords::*in_code,
        Kind<T> kind) {
  SettingField word;
  word.name = std::move(name);
  word.variable = variable.empty() ? "" : "ANTIPODE_" + variable;
  word.read = [in_force, read = kind.read](Settings& settings, std::string_view text) {
    T value{};
    Complaint complaint = read(text, value);
    if (!complaint) settings.*in_force = std::move(value);
    return complaint;
  };
  word.take = [in_force, in_code](Settings& settings, const SettingWords& words) {
    if (words.*in_code) settings.*in_force = *(words.*in_code);
    return (words.*in_code).has_value();
  };
  word.check = [in_code, check = kind.check](const SettingWords& words) -> Complaint {
    return words.*in_code ? check(*(words.*in_code)) : std::nullopt;
  };
  word.merge = [in_code](SettingWords& to, const SettingWords& from) {
    if (from.*in_code) to.*in_code = from.*in_code;
  };
  word.show = [in_force, show = kind.show](const Settings& settings) { return show(settings.*in_force); };
  return word;
}

constexpr double kMs = 0.001;
constexpr double kS = 1.0;
constexpr double kMostTimeout = 3600.0;  // BAR-58

Kind<Mode> ModeKind() { return Choice<Mode>({Mode::kEnforce, Mode::kDryRun, Mode::kOff}); }

std::vector<SettingField> MakeWords() {
  using S = Settings;
  using W = SettingWords;
  return {
      Of("mode", "MODE", &S::mode, &W::mode, ModeKind()),
      Of("region", "REGION", &S::region, &W::region, Text()),
      Of("timeout", "TIMEOUT_MS", &S::timeout, &W::timeout, Time(kMs, 0.0, kMostTimeout)),
      Of("on_timeout", "ON_TIMEOUT", &S::on_timeout, &W::on_timeout,
         Choice<Policy>({Policy::kRaise, Policy::kProceed})),
      Of("on_unproven", "ON_UNPROVEN", &S::on_unproven, &W::on_unproven,
         Choice<Policy>({Policy::kRaise, Policy::kProceed, Policy::kAsTimeout})),
      Of("on_vacuous", "ON_VACUOUS", &S::on_vacuous, &W::on_vacuous,
         Choice<Policy>({Policy::kRaise, Policy::kProceed})),
      Of("stores", "STORES", &S::stores, &W::stores, Names()),
      Of("redeliver_delay", "REDELIVER_DELAY_MS", &S::redeliver_delay, &W::redeliver_delay, Time(kMs)),
      Of("on_pending", "ON_PENDING", &S::on_pending, &W::on_pending,
         Choice<OnPending>({OnPending::kMark, OnPending::kWarn, OnPending::kRaise})),
      Of("trust", "TRUST", &S::trust, &W::trust,
         Choice<Trust>({Trust::kPrivate, Trust::kAll, Trust::kNone, Trust::kKey})),
      Of("edge", "EDGE", &S::edge, &W::edge, Flag()),
      Of("forwarded", "FORWARDED", &S::forwarded, &W::forwarded,
         Choice<Forwarded>({Forwarded::kCheck, Forwarded::kIgnore})),
      Of("peers", "PEERS", &S::peers, &W::peers, Names()),
      Of("keys_file", "KEYS_FILE", &S::keys_file, &W::keys_file, Text()),
      Of("keys", "", &S::keys, &W::keys, KeyKind()),
      Of("trust_unix", "TRUST_UNIX", &S::trust_unix, &W::trust_unix, Flag()),
      Of("seal_ttl", "SEAL_TTL_S", &S::seal_ttl, &W::seal_ttl, Time(kS, 1.0)),
      Of("seal_rest_ttl", "SEAL_REST_TTL_S", &S::seal_rest_ttl, &W::seal_rest_ttl, Time(kS)),
      Of("budget_bytes", "BUDGET_BYTES", &S::budget_bytes, &W::budget_bytes,
         Count(kLeastBudget, static_cast<std::int64_t>(wire::kMaxBytes))),
      Of("hash_keys", "HASH_KEYS", &S::hash_keys, &W::hash_keys, Flag()),
      Of("auto_merge", "AUTO_MERGE", &S::auto_merge, &W::auto_merge, Flag()),
      Of("max_waiters", "MAX_WAITERS", &S::max_waiters, &W::max_waiters, Count(0)),
      Of("max_tasks", "MAX_TASKS", &S::max_tasks, &W::max_tasks, Count(0)),
      Of("replica_out_after", "REPLICA_OUT_AFTER_MS", &S::replica_out_after, &W::replica_out_after, Time(kMs)),
      Of("reconnect", "RECONNECT_MS", &S::reconnect, &W::reconnect, Time(kMs, 0.1)),
      Of("left_server", "LEFT_SERVER_MS", &S::left_server, &W::left_server, Time(kMs)),
      Of("on_replica_out", "ON_REPLICA_OUT", &S::on_replica_out, &W::on_replica_out,
         Choice<OnReplicaOut>({OnReplicaOut::kName, OnReplicaOut::kFail})),
      Of("max_fallbacks", "MAX_FALLBACKS", &S::max_fallbacks, &W::max_fallbacks, Count(0)),
      Of("free_path_ttl", "FREE_PATH_TTL_MS", &S::free_path_ttl, &W::free_path_ttl, Time(kMs)),
      Of("poll", "POLL_MS", &S::poll, &W::poll, Time(kMs, 0.0001)),
      Of("session_ttl", "SESSION_TTL_S", &S::session_ttl, &W::session_ttl, Time(kS)),
      Of("records", "RECORDS", &S::records, &W::records, Text()),
      Of("records_max_mib", "RECORDS_MAX_MIB", &S::records_max_mib, &W::records_max_mib, Count(1)),
      Of("records_folder_mib", "RECORDS_FOLDER_MIB", &S::records_folder_mib, &W::records_folder_mib, Count(1)),
      Of("sample", "SAMPLE", &S::sample, &W::sample, Share()),
      Of("repeat_reads", "REPEAT_READS", &S::repeat_reads, &W::repeat_reads, Flag()),
      Of("history", "HISTORY", &S::history, &W::history, Text()),
  };
}

}  // namespace

std::string_view ToString(Mode mode) {
  return mode == Mode::kEnforce ? "enforce" : mode == Mode::kDryRun ? "dry-run" : "off";
}

std::string_view ToString(Trust trust) {
  switch (trust) {
    case Trust::kPrivate:
      return "private";
    case Trust::kAll:
      return "all";
    case Trust::kNone:
      return "none";
    case Trust::kKey:
      return "key";
  }
  return "none";
}

std::string_view ToString(Policy policy) {
  switch (policy) {
    case Policy::kRaise:
      return "raise";
    case Policy::kProceed:
      return "proceed";
    case Policy::kRedeliver:
      return "redeliver";
    case Policy::kAsTimeout:
      return "as_timeout";
  }
  return "raise";
}

std::string_view ToString(OnPending on_pending) {
  return on_pending == OnPending::kMark ? "mark" : on_pending == OnPending::kWarn ? "warn" : "raise";
}

std::string_view ToString(Forwarded forwarded) { return forwarded == Forwarded::kCheck ? "check" : "ignore"; }

std::string_view ToString(OnReplicaOut on_replica_out) {
  return on_replica_out == OnReplicaOut::kName ? "name" : "fail";
}

const std::vector<SettingField>& SettingWordTable() {
  static const auto* const words = new std::vector<SettingField>(MakeWords());  // never destroyed: threads may outlive main
  return *words;
}

const std::vector<StoreWord>& StoreWordTable() {
  static const auto* const words = new std::vector<StoreWord>{
      {"REPLICAS", [](StoreSettings& store, std::string_view text) { return Names().read(text, store.replicas); }},
      {"PRIMARY", [](StoreSettings& store, std::string_view text) { return Text().read(text, store.primary); }},
      {"TIMEOUT_MS",
       [](StoreSettings& store, std::string_view text) {
         Duration value{};
         Complaint complaint = Time(kMs, 0.0, kMostTimeout).read(text, value);
         if (!complaint) store.timeout = value;
         return complaint;
       }},
      {"MODE",
       [](StoreSettings& store, std::string_view text) {
         Mode value{};
         Complaint complaint = ModeKind().read(text, value);
         if (!complaint) store.mode = value;
         return complaint;
       }},
  };
  return *words;
}

}  // namespace antipode
