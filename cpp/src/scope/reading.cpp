#include "antipode/reading.h"

#include <utility>

#include "scope/context.h"

namespace antipode {
namespace {

std::uint64_t EnterReading(std::shared_ptr<ReadingBlock> block) {
  return context::Enter({CurrentScope(), std::move(block)});
}

}  // namespace

Lineage ReadingBlock::lineage() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lineage_;
}

void ReadingBlock::Saw(const std::vector<WriteId>& ids, const Lineage& lineage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lineage_ = (lineage_ | lineage).Including(ids);
}

void ReadingBlock::Marked(const std::string& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lineage_ = lineage_.MarkedIncomplete({store});
}

std::shared_ptr<ReadingBlock> CurrentReading() { return context::Current().reading; }

Reading::Reading(ReadingOptions options)
    : merge_(options.merge),
      block_(std::make_shared<ReadingBlock>(std::move(options.after))),
      entered_(EnterReading(block_)) {}

Reading::~Reading() {
  context::Leave(entered_);
  if (!merge_) return;
  if (const ScopePtr scope = CurrentScope()) scope->TransferRead(block_->lineage());
}

}  // namespace antipode
