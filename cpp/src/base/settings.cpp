#include "antipode/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <sstream>

#include "antipode/logs.h"
#include "base/fork.h"
#include "base/mode_changes.h"
#include "base/observers.h"
#include "base/own_thread.h"
#include "base/peers.h"
#include "base/setting_words.h"
#include "model/quote.h"
#include "model/text.h"

extern char** environ;

namespace antipode {
namespace {

constexpr std::string_view kPrefix = "ANTIPODE_";
constexpr std::string_view kStorePrefix = "ANTIPODE_STORE_";
// How the names begin that this project's own tools read.
constexpr std::string_view kTools[] = {"ANTIPODE_LAB", "ANTIPODE_BENCHMARK", "ANTIPODE_TEST"};
constexpr std::string_view kSpace = " \t\r\n\v\f";
constexpr std::string_view kDefault = "default";

using Environment = std::map<std::string, std::string>;

struct ResolvedSettings {
  std::shared_ptr<const Settings> settings;
  std::vector<SettingOrigin> origins;
  std::map<std::string, StoreSettings> stores;
  std::map<std::string, std::string> unknown;
  std::optional<Error> error;  // of a variable that cannot be read
  std::string
      readable_keys;  // the setting that names a file of keys which every user may read; empty where there is none

  // What is wrong with the environment; nobody holds a lock then, because a sink may look at the settings.
  void SayWhatIsWrong() const;
};

struct Holder {
  std::mutex mutex;
  SettingWords code;
  std::shared_ptr<const ResolvedSettings> resolved;
};

Holder& TheHolder() { return ForkSafe<Holder, LockOrder::kOuter>(); }

std::atomic<std::uint64_t> generation{0};
std::atomic<std::uint64_t> times_off_ended{0};

Error Bad(MessageCode code, const std::string& words) { return Error{ErrorCode::kConfiguration, code, words}; }

Environment OurVariables() {
  Environment found;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view line = *each;
    const std::size_t equals = line.find('=');
    if (StartsWith(line, kPrefix) && equals != std::string_view::npos) {
      found.emplace(line.substr(0, equals), Trim(line.substr(equals + 1), kSpace));
    }
  }
  return found;
}

std::string Wanted(const std::string& variable, const std::string& text, const std::string& complaint) {
  return variable + "=" + Quoted(text) + ": " + complaint;
}

// Takes the variables of single stores out of the environment and reads them.
void ReadStores(Environment& environment, ResolvedSettings& resolved) {
  for (auto each = environment.begin(); each != environment.end();) {
    const auto& [variable, text] = *each;
    const StoreWord* found = nullptr;
    for (const StoreWord& word : StoreWordTable()) {
      const std::string end = "_" + word.end;
      if (StartsWith(variable, kStorePrefix) && EndsWith(variable, end) &&
          variable.size() > kStorePrefix.size() + end.size()) {
        found = &word;
        if (!text.empty()) {
          const std::string store =
              variable.substr(kStorePrefix.size(), variable.size() - kStorePrefix.size() - end.size());
          if (const Complaint complaint = word.read(resolved.stores[store], text); complaint && !resolved.error) {
            resolved.error = Bad("AP301", Wanted(variable, text, *complaint));
          }
        }
        break;
      }
    }
    each = found == nullptr ? std::next(each) : environment.erase(each);
  }
}

void ReadUnknown(const Environment& environment, ResolvedSettings& resolved) {
  std::vector<std::string> known;
  for (const SettingField& word : SettingWordTable()) {
    if (!word.variable.empty()) known.push_back(word.variable);
  }
  for (const auto& [variable, text] : environment) {
    const bool tool = std::any_of(std::begin(kTools), std::end(kTools),
                                  [&name = variable](std::string_view start) { return StartsWith(name, start); });
    if (tool) continue;
    resolved.unknown.emplace(variable, DidYouMean(variable, known));
  }
}

// For these the operator can be more careful than the code, never less.
bool EnvironmentIsMoreCareful(const std::string& word, const Settings& environment, const SettingWords& code) {
  if (word == "mode") return code.mode && environment.mode > *code.mode;
  return word == "edge" && environment.edge;
}

SettingOrigin& OriginOf(ResolvedSettings& resolved, std::string_view word) {
  return *std::find_if(resolved.origins.begin(), resolved.origins.end(),
                       [word](const SettingOrigin& origin) { return origin.word == word; });
}

// Reads the keys file, and lets keys alone mean `key` (CONF-11).
void AddKeys(Settings& settings, ResolvedSettings& resolved) {
  if (settings.keys.empty() && !settings.keys_file.empty()) {
    const std::string where = OriginOf(resolved, "keys_file").variable + "=" + settings.keys_file;
    std::ifstream file(settings.keys_file, std::ios::binary);
    std::ostringstream contents;
    if (file) contents << file.rdbuf();
    if (!file || file.bad()) {
      if (!resolved.error) resolved.error = Bad("AP304", where + " cannot be read");
    } else if (Result<Keys> keys = Keys::ParseFile(contents.str(), where); keys) {
      settings.keys = *keys;
      OriginOf(resolved, "keys").origin = OriginOf(resolved, "keys_file").origin;
      struct stat about {};
      if (stat(settings.keys_file.c_str(), &about) == 0 && (about.st_mode & S_IROTH) != 0) {
        resolved.readable_keys = where;
      }
    } else if (!resolved.error) {
      resolved.error = keys.error();
    }
  }
  SettingOrigin& trust = OriginOf(resolved, "trust");
  if (!settings.keys.empty() && trust.origin == kDefault) {
    settings.trust = Trust::kKey;
    trust.origin = "keys are set";
  }
  if (settings.trust == Trust::kKey && settings.keys.empty() && !resolved.error) {
    resolved.error = Bad("AP303", "trust=key needs keys: set ANTIPODE_KEYS_FILE, or keys in Configure");
  }
}

// What is in force of environment and code. Where a variable cannot be read everything else is, and nobody is believed.
ResolvedSettings Resolve(const SettingWords& code) {
  ResolvedSettings resolved;
  Environment environment = OurVariables();
  Settings settings;
  for (const SettingField& word : SettingWordTable()) {
    resolved.origins.push_back({word.name, word.variable, "", std::string(kDefault)});
    SettingOrigin& origin = resolved.origins.back();
    if (const auto found = environment.find(word.variable); found != environment.end()) {
      if (!found->second.empty()) {
        origin.origin = "environment (" + word.variable + ")";
        if (const Complaint complaint = word.read(settings, found->second); complaint && !resolved.error) {
          resolved.error = Bad("AP301", Wanted(word.variable, found->second, *complaint));
        }
      }
      environment.erase(found);
    }
    if (!EnvironmentIsMoreCareful(word.name, settings, code) && word.take(settings, code)) origin.origin = "configure";
  }
  ReadStores(environment, resolved);
  ReadUnknown(environment, resolved);
  AddKeys(settings, resolved);
  if (Result<Peers> peers = Peers::Make(settings.peers); !peers && !resolved.error) resolved.error = peers.error();
  if (resolved.error) settings.trust = Trust::kNone;
  const std::vector<SettingField>& words = SettingWordTable();
  for (std::size_t i = 0; i < words.size(); ++i) resolved.origins[i].value = words[i].show(settings);
  resolved.settings = std::make_shared<const Settings>(std::move(settings));
  return resolved;
}

void ResolvedSettings::SayWhatIsWrong() const {
  for (const auto& [variable, hint] : unknown) {
    logs::Warn("AP302", "variable " + variable, "the variable " + variable + " is not known and does nothing." + hint);
  }
  if (!readable_keys.empty()) {
    logs::Warn("AP307", "keys file", readable_keys + " may be read by every user of this machine: chmod o-r it.");
  }
  if (!error) return;
  logs::Say(error->message_code, LogLevel::kError, error->Words() + ". No lineage is taken or sent until it is right.");
}

// What is in force, read now if nobody did.
std::shared_ptr<const ResolvedSettings> InForce() {
  std::shared_ptr<const ResolvedSettings> resolved;
  {
    Holder& holder = TheHolder();
    const std::lock_guard<std::mutex> lock(holder.mutex);
    if (holder.resolved != nullptr) return holder.resolved;
    resolved = holder.resolved = std::make_shared<const ResolvedSettings>(Resolve(holder.code));
    ++generation;
  }
  resolved->SayWhatIsWrong();
  return resolved;
}

// What this thread saw last, so that a look costs no lock.
struct Seen {
  std::uint64_t generation = 0;
  std::shared_ptr<const Settings> settings;
};

}  // namespace

std::shared_ptr<const Settings> CurrentSettings() {
  // In a thread without memory glibc ends the process where a thread_local is to be destroyed some day (BAR-61).
  if (threads::OnEngineThread()) return InForce()->settings;
  thread_local Seen seen;
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (seen.settings == nullptr || seen.generation != now) {
    seen.settings = InForce()->settings;
    seen.generation = now;
  }
  return seen.settings;
}

Result<std::shared_ptr<const Settings>> LoadSettings() {
  const auto resolved = InForce();
  if (resolved->error) return *resolved->error;
  return resolved->settings;
}

Result<std::shared_ptr<const Settings>> Configure(const SettingWords& words) {
  for (const SettingField& word : SettingWordTable()) {
    if (const Complaint complaint = word.check(words)) {
      return Bad("AP301", "Configure(" + word.name + "): " + *complaint);
    }
  }
  std::shared_ptr<const ResolvedSettings> resolved;
  {
    Holder& holder = TheHolder();
    const std::lock_guard<std::mutex> lock(holder.mutex);
    SettingWords code = holder.code;
    for (const SettingField& word : SettingWordTable()) word.merge(code, words);
    resolved = std::make_shared<const ResolvedSettings>(Resolve(code));
    if (resolved->error) return *resolved->error;
    const bool leaves_off = holder.resolved != nullptr && holder.resolved->settings->mode == Mode::kOff &&
                            resolved->settings->mode != Mode::kOff;
    if (leaves_off) ++times_off_ended;  // first: under the new mode no barrier may pass a scope that is not marked
    holder.code = std::move(code);
    holder.resolved = resolved;
    ++generation;
    if (leaves_off) ++times_off_ended;  // what was opened meanwhile
  }
  resolved->SayWhatIsWrong();
  Events().SettingsChanged();
  return resolved->settings;
}

void ResetSettings() {
  Holder& holder = TheHolder();
  const std::lock_guard<std::mutex> lock(holder.mutex);
  holder.code = SettingWords();
  holder.resolved = nullptr;
  ++generation;
}

std::uint64_t TimesOffEnded() { return times_off_ended.load(std::memory_order_acquire); }

std::uint64_t SettingsGeneration() { return generation.load(std::memory_order_acquire); }

std::vector<SettingOrigin> SettingOrigins() { return InForce()->origins; }

bool IsSaid(std::string_view word) {
  const auto resolved = InForce();
  return std::any_of(resolved->origins.begin(), resolved->origins.end(),
                     [word](const SettingOrigin& each) { return each.word == word && each.origin != kDefault; });
}

std::map<std::string, StoreSettings> StoresInEnvironment() { return InForce()->stores; }

std::map<std::string, std::string> UnknownVariables() { return InForce()->unknown; }

StoreSettings SettingsOfStore(std::string_view store) {
  const auto resolved = InForce();
  const auto found = resolved->stores.find(VariableName(store));
  return found == resolved->stores.end() ? StoreSettings() : found->second;
}

std::string VariableName(std::string_view store) {
  std::string name;
  int continuing = 0;  // octets of a UTF-8 sequence that are still to come: a character counts once
  for (const char c : store) {
    const auto octet = static_cast<unsigned char>(c);
    const bool continues = continuing > 0 && (octet & 0xC0) == 0x80;
    continuing = continues ? continuing - 1 : octet >= 0xF0 ? 3 : octet >= 0xE0 ? 2 : octet >= 0xC0 ? 1 : 0;
    if (continues) continue;
    const std::string upper = Upper(std::string_view(&c, 1));
    const bool plain = (upper[0] >= 'A' && upper[0] <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? upper[0] : '_';
  }
  return name;
}

Duration TimeoutOf(std::string_view store, std::optional<Duration> option) {
  if (option) return *option;
  const auto settings = CurrentSettings();
  {
    Holder& holder = TheHolder();
    const std::lock_guard<std::mutex> lock(holder.mutex);
    if (store.empty() || holder.code.timeout) return settings->timeout;
  }
  return SettingsOfStore(store).timeout.value_or(settings->timeout);
}

Mode ModeOf(std::string_view store, std::optional<Mode> option) {
  return std::max({CurrentSettings()->mode, SettingsOfStore(store).mode.value_or(Mode::kEnforce),
                   option.value_or(Mode::kEnforce)});
}

}  // namespace antipode
