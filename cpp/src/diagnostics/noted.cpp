// What a recorded history is told of one write or read, as lines of it (spec HIST-27, HIST-28).
#include <utility>

#include "diagnostics/history_spelling.h"
#include "diagnostics/recorder.h"

namespace antipode::history {

// One operation on a store, begun.
class Operation {
 public:
  Operation(Recorder& recorder, const Store& store, Step step)
      : recorder_(recorder),
        store_(store.name()),
        positions_(store.capabilities().versions == Versions::kPosition),
        step_(std::move(step)) {}

  bool over() const { return step_.over; }
  bool positions() const { return positions_; }
  JsonObject Fields() const { return JsonObject().Text("store", store_); }
  void Fail() noexcept { recorder_.Failed(); }
  void End(const std::vector<Told>& told, bool certain = true) noexcept { recorder_.Finish(step_, told, certain); }

  // Ends with these lines; where they cannot be made, without any, and that is said.
  template <class Lines>
  void Tell(const Lines& lines, bool certain = true) noexcept {
    std::vector<Told> told;
    try {
      told = lines();
    } catch (...) {
      told.clear();
      recorder_.Failed();
    }
    End(told, certain);
  }

 private:
  Recorder& recorder_;
  const std::string store_;
  const bool positions_;
  Step step_;
};

namespace {

class WriteEvent final : public WriteObserver {
 public:
  explicit WriteEvent(std::unique_ptr<Operation> operation) noexcept;
  WriteEvent(const WriteEvent&) = delete;
  WriteEvent& operator=(const WriteEvent&) = delete;
  ~WriteEvent() override;

  void Changes(std::optional<std::vector<KeyChange>> changed) noexcept override;
  void Done(const std::optional<WriteId>& write_id, std::string_view key) noexcept override;
  void Unknown(std::string_view key) noexcept override;
  void NotDone() noexcept override;

 private:
  const std::unique_ptr<Operation> operation_;
  std::optional<std::vector<KeyChange>> changed_;
};

// One read, from before it is sent until its end; where no reply came, it is none.
class ReadEvent final : public ReadObserver {
 public:
  explicit ReadEvent(std::unique_ptr<Operation> operation) noexcept;
  ReadEvent(const ReadEvent&) = delete;
  ReadEvent& operator=(const ReadEvent&) = delete;
  ~ReadEvent() override;

  void Returned(const ReadReply& reply) noexcept override;
  void Covered(const WriteId& position) noexcept override;

 private:
  const std::unique_ptr<Operation> operation_;
  std::vector<JsonObject> values_;
  std::optional<WriteId> covers_;
};

std::string TextOf(const WriteId& write_id) { return Lineage(write_id).Serialize(); }

JsonObject FieldsOf(const KeyChange& changed) {
  JsonObject fields;
  fields.Text("key", SpelledKey(changed.key));
  if (changed.content == Content::kSomething) fields.Flag("there", true);
  if (changed.content == Content::kNothing) fields.Null("value");
  if (changed.expires) fields.Flag("expires", true);
  return fields;
}

JsonObject FieldsOf(const ReadValue& value) {
  JsonObject fields;
  fields.Text("key", SpelledKey(value.key));
  if (value.version) fields.Text("version", TextOf(*value.version));
  if (value.content == Content::kNothing) {
    fields.Null("value");
  } else if (!value.version) {
    fields.Text("reads_from", "unattributed");
  }
  return fields;
}

std::vector<Told> WriteLines(const JsonObject& fields, const std::optional<std::vector<KeyChange>>& changed) {
  std::vector<Told> told;
  const auto add = [&](const JsonObject& own) { told.push_back({"write", JsonObject(fields).With(own)}); };
  if (!changed) {
    add(JsonObject().Text("key", "").Flag("any_key", true));
  } else if (changed->empty()) {
    add(JsonObject().Text("key", "").Flag("nothing", true));
  } else {
    for (const KeyChange& each : *changed) add(FieldsOf(each));
  }
  return told;
}

std::unique_ptr<Operation> Begin(Recorder& recorder, const Store& store, LineageScope* scope, const Lineage& lineage) {
  std::optional<Step> step = recorder.Begin(scope, lineage);
  return step ? std::make_unique<Operation>(recorder, store, *std::move(step)) : nullptr;
}

}  // namespace

WriteEvent::WriteEvent(std::unique_ptr<Operation> operation) noexcept : operation_(std::move(operation)) {}

WriteEvent::~WriteEvent() { WriteEvent::Unknown({}); }

void WriteEvent::Changes(std::optional<std::vector<KeyChange>> changed) noexcept { changed_ = std::move(changed); }

void WriteEvent::Done(const std::optional<WriteId>& write_id, std::string_view key) noexcept {
  operation_->Tell([&] {
    if (!changed_ && !key.empty() && !operation_->positions()) changed_ = {KeyChange{std::string(key)}};
    JsonObject fields = operation_->Fields();
    if (write_id) fields.Text("identifier", TextOf(*write_id));
    return WriteLines(fields, changed_);
  });
}

void WriteEvent::Unknown(std::string_view key) noexcept {
  if (operation_->over()) return;
  if (changed_ && changed_->empty()) {
    NotDone();
    return;
  }
  operation_->Tell(
      [&] {
        if (!changed_ && !key.empty() && !operation_->positions()) changed_ = {KeyChange{std::string(key)}};
        return WriteLines(operation_->Fields().Text("outcome", "unknown"), changed_);
      },
      false);
}

void WriteEvent::NotDone() noexcept { operation_->End({}); }

ReadEvent::ReadEvent(std::unique_ptr<Operation> operation) noexcept : operation_(std::move(operation)) {}

ReadEvent::~ReadEvent() {
  if (values_.empty()) {
    operation_->End({});
    return;
  }
  operation_->Tell([&] {
    JsonObject fields = operation_->Fields();
    if (covers_) fields.Text("covers", TextOf(*covers_));
    std::vector<Told> told;
    told.reserve(values_.size());
    for (const JsonObject& each : values_) told.push_back({"read", JsonObject(fields).With(each)});
    return told;
  });
}

void ReadEvent::Returned(const ReadReply& reply) noexcept {
  try {
    for (const ReadValue& each : reply.values) values_.push_back(FieldsOf(each));
  } catch (...) {
    values_.clear();
    operation_->Fail();
  }
}

void ReadEvent::Covered(const WriteId& position) noexcept {
  try {
    covers_ = position;
  } catch (...) {
    operation_->Fail();
  }
}

std::unique_ptr<WriteObserver> NoteWrite(const ScopePtr& scope, const Store& store, const Lineage& lineage) noexcept {
  Recorder* const found = Recorder::InForce();
  if (found == nullptr) return nullptr;
  try {
    found->NotRead(store);
    auto operation = Begin(*found, store, scope.get(), lineage);
    return operation == nullptr ? nullptr : std::make_unique<WriteEvent>(std::move(operation));
  } catch (...) {
    found->Failed();
    return nullptr;
  }
}

std::unique_ptr<ReadObserver> NoteRead(const Store& store, const ScopePtr& scope) noexcept {
  Recorder* const found = Recorder::InForce();
  if (found == nullptr || scope == nullptr) return nullptr;
  try {
    if (!store.records()) {
      found->NotRead(store);
      return nullptr;
    }
    auto operation = Begin(*found, store, scope.get(), scope->Known());
    return operation == nullptr ? nullptr : std::make_unique<ReadEvent>(std::move(operation));
  } catch (...) {
    found->Failed();
    return nullptr;
  }
}

}  // namespace antipode::history
