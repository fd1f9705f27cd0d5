/// \file
/// `Reading`: what the values that are read inside a block depend on (spec SHIM-12, SHIM-13).
#ifndef ANTIPODE_READING_H_
#define ANTIPODE_READING_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// What a block of reads has seen; shims tell it, from any thread that the block was carried to.
class ReadingBlock {
 public:
  explicit ReadingBlock(std::optional<Lineage> after) : after_(std::move(after)) {}

  /// Each read waits for this first, on its own connection (reach `session`); nothing where it does not wait.
  const std::optional<Lineage>& after() const { return after_; }

  /// What a reader of these values depends on.
  Lineage lineage() const;

  /// A shim has read a value: its lineage at rest, and identifiers that cover the value itself.
  void Saw(const std::vector<WriteId>& ids, const Lineage& lineage = {});

  /// A shim has read a value of which it cannot tell what it depends on.
  void Marked(const std::string& store);

 private:
  const std::optional<Lineage> after_;
  mutable std::mutex mutex_;
  Lineage lineage_;
};

/// The innermost block of reads that the caller is in, which shims ask before they read; null outside any.
std::shared_ptr<ReadingBlock> CurrentReading();

/// How a block of reads is to be.
struct ReadingOptions {
  /// Each read first waits until this lineage's writes to its own store are visible on its own connection.
  std::optional<Lineage> after;
  /// At the end the current scope is made to depend on what was read.
  bool merge = false;
};

/// Collects what the reads inside its block depend on.
class [[nodiscard]] Reading {
 public:
  Reading() : Reading(ReadingOptions()) {}
  explicit Reading(ReadingOptions options);
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading();

  /// What a reader of these values depends on.
  Lineage lineage() const { return block_->lineage(); }

 private:
  const bool merge_;
  const std::shared_ptr<ReadingBlock> block_;
  const std::uint64_t entered_;
};

}  // namespace antipode

#endif  // ANTIPODE_READING_H_
