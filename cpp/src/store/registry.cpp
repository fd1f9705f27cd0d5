#include "store/registry.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "antipode/wire.h"
#include "base/fork.h"
#include "base/observers.h"
#include "base/time.h"
#include "model/quote.h"
#include "model/text.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

std::atomic<std::uint64_t> generation{1};
std::mutex current_mutex;

std::shared_ptr<Registry>& Current() {
  static auto* const current = new std::shared_ptr<Registry>(std::make_shared<Registry>());  // outlives all threads
  return *current;
}

struct Kinds {
  std::mutex mutex;
  std::map<std::string, ShimType, std::less<>> by_name;
};

Kinds& KnownKinds() {
  static auto* const kinds = new Kinds();
  return *kinds;
}

// A name without what people mistake in names: case, `-` and `_`.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char each : Lower(name)) {
    if (each != '-' && each != '_') plain += each;
  }
  return plain;
}

// At a fork nobody replaces the registry, and none of its locks is held by a thread that the child has not.
void BeforeFork() {
  current_mutex.lock();
  Current()->BeforeFork();
}

void AfterForkInParent() {
  Current()->AfterForkInParent();
  current_mutex.unlock();
}

void AfterForkInChild() {
  Current()->AfterForkInChild();
  current_mutex.unlock();
}

// Has the stores' engines go on in the parent of a fork and begin anew in its child (SCOPE-13); done once.
void TakePartInForks() {
  static const bool takes_part = [] {
    AddForkPart({BeforeFork, AfterForkInParent, AfterForkInChild});
    return true;
  }();
  static_cast<void>(takes_part);
}

}  // namespace

std::uint64_t RegistryGeneration() noexcept { return generation.load(std::memory_order_acquire); }

std::shared_ptr<Registry> CurrentRegistry() {
  const std::lock_guard<std::mutex> lock(current_mutex);
  return Current();
}

std::shared_ptr<Registry> ReplaceRegistry(std::shared_ptr<Registry> other) {
  const std::lock_guard<std::mutex> lock(current_mutex);
  std::swap(Current(), other);
  generation.fetch_add(1, std::memory_order_acq_rel);
  return other;
}

Result<std::shared_ptr<Store>> Registry::Join(const ShimType& type, const StoreOptions& options) {
  TakePartInForks();
  // Refuses a name that the wire cannot carry.
  const Result<WriteId> checked = WriteId::Make(options.name, "check", Ordered{"", 0});
  if (!checked.ok()) return checked.error();
  const Duration timeout = options.timeout.value_or(Duration::zero());
  if (timeout < Duration::zero() || timeout > kLongestTimeout) {  // BAR-58
    return Error{ErrorCode::kConfiguration, "AP109",
                 options.name + ": its Timeout is " + std::to_string(Seconds(timeout)) + " s: want 0 to 3600 s"};
  }
  if (options.replicas && options.replicas->empty()) {  // BAR-53
    return Error{ErrorCode::kConfiguration, "AP501",
                 options.name +
                     ": Replicas({}) names no server: name those that readers of this region may use, or leave "
                     "it out for the client's own"};
  }
  std::shared_ptr<Store> store;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(stores_.begin(), stores_.end(),
                                    [&](const auto& each) { return each->name() == options.name; });
    if (found != stores_.end()) {
      store = *found;
    } else {
      store = std::make_shared<Store>(type, options);
      stores_.push_back(store);
      generation.fetch_add(1, std::memory_order_acq_rel);
    }
  }
  const std::optional<Mode> mode = store->options()->mode;
  const Result<void> joined = store->impl().Join(type, options);
  if (!joined.ok()) return joined.error();
  // A pass that is kept may be without this store.
  if (store->options()->mode != mode) generation.fetch_add(1, std::memory_order_acq_rel);
  Events().StoreJoined(*store);
  return store;
}

std::shared_ptr<Store> Registry::Get(std::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& store : stores_) {
    if (store->name() == name) return store;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Store>> Registry::All() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stores_;
}

Result<std::shared_ptr<Store>> Registry::Need(std::string_view name) const {
  if (std::shared_ptr<Store> store = Get(name)) return store;
  const std::vector<std::string> known = NamesOf(All());
  return Error{ErrorCode::kUnknownStore, "AP106",
               "Barrier(Stores({\"" + std::string(name) + "\"})): no such store in this process; registered: " +
                   Listed(known, "none") + ".\n " + DidYouMean(name, known) +
                   " If another service owns it, leave it out, or register it here."};
}

void Registry::BeforeFork() {
  mutex_.lock();
  for (const auto& store : stores_) store->impl().BeforeFork();
}

void Registry::AfterForkInParent() {
  for (const auto& store : stores_) store->impl().AfterForkInParent();
  mutex_.unlock();
}

void Registry::AfterForkInChild() {
  for (const auto& store : stores_) store->impl().AfterForkInChild();
  mutex_.unlock();
}

std::string Listed(const std::vector<std::string>& names, std::string_view none) {
  if (names.empty()) return std::string(none);
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<Store>>& stores) {
  std::vector<std::string> names;
  names.reserve(stores.size());
  for (const auto& store : stores) names.push_back(store->name());
  return names;
}

std::vector<std::string> TwinsOf(const std::string& name) {
  std::vector<std::string> twins = NamesOf(CurrentRegistry()->All());
  if (std::find(twins.begin(), twins.end(), name) != twins.end()) return {};
  const auto is_other = [plain = Plain(name)](const std::string& each) { return Plain(each) != plain; };
  twins.erase(std::remove_if(twins.begin(), twins.end(), is_other), twins.end());
  return twins;
}

Visibility Misspelt(std::string_view name, std::string_view twin) {
  return Visibility::Unproven("the lineage names store \"" + Shown(name) + "\", this process has registered \"" +
                                  std::string(twin) + "\": the same name but for case, - and _",
                              UnprovenKind::kMisspelt);
}

std::optional<Visibility> MisspeltIn(const Lineage& lineage, const std::string& store) {
  for (const std::string& name : lineage.stores()) {
    if (name != store && Plain(name) == Plain(store) && CurrentRegistry()->Get(name) == nullptr) {
      return Misspelt(name, store);
    }
  }
  return std::nullopt;
}

Result<void> RegisterShim(ShimType type) {
  Kinds& kinds = KnownKinds();
  const std::lock_guard<std::mutex> lock(kinds.mutex);
  const auto [found, fresh] = kinds.by_name.try_emplace(type.kind, type);
  if (fresh || found->second.type == type.type) return {};
  return Error{ErrorCode::kConfiguration, "AP501",
               "Register(\"" + type.kind + "\"): another shim has this name already"};
}

Result<ShimType> FindShim(std::string_view kind) {
  Kinds& kinds = KnownKinds();
  const std::lock_guard<std::mutex> lock(kinds.mutex);
  const auto found = kinds.by_name.find(kind);
  if (found != kinds.by_name.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& each : kinds.by_name) known.push_back(each.first);
  return Error{ErrorCode::kConfiguration, "AP501",
               "no shim is registered for \"" + std::string(kind) + "\" (registered: " + Listed(known, "none") +
                   "): call antipode::Register<…>(\"" + std::string(kind) + "\") once, in main"};
}

Result<std::shared_ptr<Store>> JoinStore(const ShimType& type, const StoreOptions& options) {
  return CurrentRegistry()->Join(type, options);
}

Result<std::shared_ptr<Store>> JoinStore(std::string_view kind, const StoreOptions& options) {
  const Result<ShimType> type = FindShim(kind);
  if (!type.ok()) return type.error();
  return JoinStore(*type, options);
}

std::vector<std::shared_ptr<Store>> Stores() { return CurrentRegistry()->All(); }

Result<std::shared_ptr<Store>> FindStore(std::string_view name) { return CurrentRegistry()->Need(name); }

}  // namespace antipode
