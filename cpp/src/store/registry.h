/// \file
/// The stores of this process, by name.
#ifndef ANTIPODE_SRC_STORE_REGISTRY_H_
#define ANTIPODE_SRC_STORE_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/store.h"
#include "antipode/verdict.h"

namespace antipode ANTIPODE_EXPORT {

class Registry {
 public:
  Result<std::shared_ptr<Store>> Join(const ShimType& type, const StoreOptions& options);
  std::shared_ptr<Store> Get(std::string_view name) const;
  std::vector<std::shared_ptr<Store>> All() const;
  /// The store of this name; kUnknownStore with the nearest name (BAR-5).
  Result<std::shared_ptr<Store>> Need(std::string_view name) const;

  // Forks (SCOPE-13)
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Store>> stores_;
};

/// The registry in force.
std::shared_ptr<Registry> CurrentRegistry();

/// Puts another registry in force and returns the one before (tests).
std::shared_ptr<Registry> ReplaceRegistry(std::shared_ptr<Registry> other);

/// Another number whenever a store joins or another registry is in force.
std::uint64_t RegistryGeneration() noexcept;

/// Names between commas, or `none`.
std::string Listed(const std::vector<std::string>& names, std::string_view none = {});

/// The names of stores.
std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<Store>>& stores);

/// Return the registered stores whose names differ from this one in case, `-` and `_` only: it is misspelt (BAR-6).
/// None where it is registered itself.
std::vector<std::string> TwinsOf(const std::string& name);

/// Return the answer for the writes of a store that a lineage names otherwise than this process.
Visibility Misspelt(std::string_view name, std::string_view twin);

/// Return the answer for those writes to this store that a lineage has under a misspelt name; nothing without any.
std::optional<Visibility> MisspeltIn(const Lineage& lineage, const std::string& store);

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_REGISTRY_H_
