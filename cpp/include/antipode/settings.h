/// \file
/// The settings of the process: one immutable value from code, environment and defaults (spec CONF).
///
/// Order: call, then store option, then `Configure`, then environment, then default. For `mode` and `edge` the operator
/// can be more careful than the code, never less: of environment and code, the more careful wins (CONF-5).
#ifndef ANTIPODE_SETTINGS_H_
#define ANTIPODE_SETTINGS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/keys.h"
#include "antipode/result.h"

namespace antipode ANTIPODE_EXPORT {

/// Every duration of this API; `500ms` and the like convert by themselves.
using Duration = std::chrono::nanoseconds;

/// What barriers do: enforce, only record, or nothing at all. The greater is the more careful to the application.
enum class Mode { kEnforce, kDryRun, kOff };
/// Whose lineages are believed, and who may see ours (spec TRUST).
enum class Trust { kPrivate, kAll, kNone, kKey };
/// What a barrier does that ends without a pass: `kAsTimeout` is for unproven stores, `kRedeliver` for calls alone.
enum class Policy { kRaise, kProceed, kRedeliver, kAsTimeout };
/// What happens where a lineage leaves while a write is pending (SCOPE-19).
enum class OnPending { kMark, kWarn, kRaise };
/// Whether addresses in `Forwarded` and `X-Forwarded-CaseShims` are judged.
enum class Forwarded { kCheck, kIgnore };
/// What becomes of a server that does not answer (BAR-26).
enum class OnReplicaOut { kName, kFail };

/// The words as variables spell them: `dry-run`, `as_timeout`.
std::string_view ToString(Mode mode);
std::string_view ToString(Trust trust);
std::string_view ToString(Policy policy);
std::string_view ToString(OnPending on_pending);
std::string_view ToString(Forwarded forwarded);
std::string_view ToString(OnReplicaOut on_replica_out);

/// Every setting of this process.
struct Settings {
  Mode mode = Mode::kEnforce;
  std::string region;
  Duration timeout = std::chrono::seconds(1);
  Policy on_timeout = Policy::kRaise;
  Policy on_unproven = Policy::kAsTimeout;
  Policy on_vacuous = Policy::kProceed;
  std::vector<std::string> stores;
  Duration redeliver_delay = std::chrono::seconds(1);
  OnPending on_pending = OnPending::kMark;
  Trust trust = Trust::kPrivate;
  bool edge = false;
  Forwarded forwarded = Forwarded::kCheck;
  std::vector<std::string> peers;
  std::string keys_file;
  Keys keys;
  bool trust_unix = false;
  Duration seal_ttl = std::chrono::seconds(300);
  Duration seal_rest_ttl{0};
  std::int64_t budget_bytes = 1024;
  bool hash_keys = false;
  bool auto_merge = false;
  std::int64_t max_waiters = 1000;
  std::int64_t max_tasks = 20000;
  Duration replica_out_after = std::chrono::seconds(2);
  Duration reconnect = std::chrono::seconds(5);
  Duration left_server = std::chrono::seconds(60);
  OnReplicaOut on_replica_out = OnReplicaOut::kName;
  std::int64_t max_fallbacks = 64;
  Duration free_path_ttl = std::chrono::milliseconds(250);
  Duration poll = std::chrono::milliseconds(5);
  Duration session_ttl = std::chrono::seconds(300);
  std::string records = "antipode-records";
  std::int64_t records_max_mib = 64;
  std::int64_t records_folder_mib = 1024;
  double sample = 0.01;
  bool repeat_reads = true;
  std::string history;
};

/// What `Configure` takes: the words that are to be set; the others stay as they are.
struct SettingWords {
  std::optional<Mode> mode;
  std::optional<std::string> region;
  std::optional<Duration> timeout;
  std::optional<Policy> on_timeout;
  std::optional<Policy> on_unproven;
  std::optional<Policy> on_vacuous;
  std::optional<std::vector<std::string>> stores;
  std::optional<Duration> redeliver_delay;
  std::optional<OnPending> on_pending;
  std::optional<Trust> trust;
  std::optional<bool> edge;
  std::optional<Forwarded> forwarded;
  std::optional<std::vector<std::string>> peers;
  std::optional<std::string> keys_file;
  std::optional<Keys> keys;
  std::optional<bool> trust_unix;
  std::optional<Duration> seal_ttl;
  std::optional<Duration> seal_rest_ttl;
  std::optional<std::int64_t> budget_bytes;
  std::optional<bool> hash_keys;
  std::optional<bool> auto_merge;
  std::optional<std::int64_t> max_waiters;
  std::optional<std::int64_t> max_tasks;
  std::optional<Duration> replica_out_after;
  std::optional<Duration> reconnect;
  std::optional<Duration> left_server;
  std::optional<OnReplicaOut> on_replica_out;
  std::optional<std::int64_t> max_fallbacks;
  std::optional<Duration> free_path_ttl;
  std::optional<Duration> poll;
  std::optional<Duration> session_ttl;
  std::optional<std::string> records;
  std::optional<std::int64_t> records_max_mib;
  std::optional<std::int64_t> records_folder_mib;
  std::optional<double> sample;
  std::optional<bool> repeat_reads;
  std::optional<std::string> history;
};

/// What variables say of one store; empty where they say nothing (CONF-10).
struct StoreSettings {
  std::vector<std::string> replicas;
  std::string primary;
  std::optional<Duration> timeout;
  std::optional<Mode> mode;
};

/// One setting in force and where that came from: `default`, `configure`, `environment (ANTIPODE_…)`, `keys are set`.
struct SettingOrigin {
  std::string word;
  std::string variable;
  std::string value;  ///< as a variable would spell it; keys by their ids
  std::string origin;
};

/// The settings in force; the environment is read at the first look. Cheap enough for every request (CONF-12).
///
/// Where a variable cannot be read the defaults are in force, and one line at level error says which it is.
/// `LoadSettings` gives that error to whoever wants to end the process for it.
std::shared_ptr<const Settings> CurrentSettings();

/// Reads the environment now if nobody did; kConfiguration names the variable that cannot be read (CONF-3).
Result<std::shared_ptr<const Settings>> LoadSettings();

/// Sets these words for the process, at once and also while it runs; the others stay as they are.
///
/// The environment is read again. Fails (kConfiguration) for a value out of bounds, and changes nothing then (CONF-2).
Result<std::shared_ptr<const Settings>> Configure(const SettingWords& words);

/// Takes back what code has set, and reads the environment again at the next look (for tests).
void ResetSettings();

/// A number that grows whenever the settings may have changed, for what is derived from them.
std::uint64_t SettingsGeneration();

/// Every setting in force and where it came from (CONF-8).
std::vector<SettingOrigin> SettingOrigins();

/// Whether the environment or code says this setting, so that it is not the default's.
bool IsSaid(std::string_view word);

/// What variables say of single stores, by the store's name as they spell it (`BLOG_POSTS`).
std::map<std::string, StoreSettings> StoresInEnvironment();

/// The `ANTIPODE_*` variables that are set and do nothing, each with the nearest known one or empty (CONF-4).
std::map<std::string, std::string> UnknownVariables();

/// What ANTIPODE_STORE_<NAME>_REPLICAS, _PRIMARY, _TIMEOUT_MS and _MODE say of this store.
StoreSettings SettingsOfStore(std::string_view store);

/// A store's name as variables spell it: `blog-posts` is `BLOG_POSTS` (CONF-10).
std::string VariableName(std::string_view store);

/// A barrier's deadline where the call has none: store option, code, environment, default.
Duration TimeoutOf(std::string_view store, std::optional<Duration> option = std::nullopt);

/// The mode of one store: the most careful of process, store's variable and store option (CONF-5).
Mode ModeOf(std::string_view store, std::optional<Mode> option = std::nullopt);

}  // namespace antipode

#endif  // ANTIPODE_SETTINGS_H_
