#include "diagnostics/recorder.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "antipode/telemetry.h"
#include "base/fork.h"
#include "base/observers.h"
#include "diagnostics/telemetry.h"
#include "engine/threads.h"
#include "scope/scope_impl.h"
#include "store/registry.h"

namespace antipode::history {

namespace {

std::atomic<Recorder*> current{nullptr};

void SayLost(const std::string& words) noexcept {
  try {
    logs::Warn("AP602", "history recorder", words);
  } catch (...) {  // the application's own sink
  }
}

}  // namespace

// All recordings of this process: more than one only where the folder changed.
struct Recordings {
  std::mutex mutex;
  std::vector<std::unique_ptr<Recorder>> all;

  static Recordings& Instance() {
    static auto* const instance = [] {
      auto* made = new Recordings();  // outlives all threads
      AddForkPart({[made] { made->BeforeFork(); }, [made] { made->AfterForkInParent(); },
                   [made] { made->AfterForkInChild(); }});
      return made;
    }();
    return *instance;
  }

  Recorder* Open(const std::string& folder) {
    if (Recorder* const before = current.load(); before != nullptr && before->folder() != folder) before->End();
    const std::lock_guard<std::mutex> lock(mutex);
    Recorder* const there = current.load();
    if (there != nullptr && there->folder() == folder) return there;
    all.push_back(std::make_unique<Recorder>(folder));
    Recorder* const made = all.back().get();
    made->Put(made->order_.Line("begin", "recording").Written());
    current.store(made);
    return made;
  }

  // A recording stays with the process that began it; what it had not written by then, too.
  void BeforeFork() {
    mutex.lock();
    for (const auto& each : all) each->writer_.BeforeFork();
  }
  void AfterForkInParent() {
    for (const auto& each : all) each->writer_.AfterForkInParent();
    mutex.unlock();
  }
  void AfterForkInChild() {
    for (const auto& each : all) each->writer_.AfterForkInChild();
    current.store(nullptr);
    mutex.unlock();
  }
};

namespace {

std::string NewTag() {
  char tag[9];
  std::snprintf(tag, sizeof tag, "%08x", std::random_device{}());
  return tag;
}

std::string ServiceName() {
  const char* const service = std::getenv("OTEL_SERVICE_NAME");
  return service != nullptr && *service != '\0' ? std::string(service) : ThisProcess().host;
}

std::string FileName(const std::string& tag) {
  const ProcessName process = ThisProcess();
  return process.host + "-" + std::to_string(process.pid) + "-" + std::to_string(process.start) + "-" + tag + ".jsonl";
}

}  // namespace

Recorder::Recorder(const std::string& folder)
    : folder_(folder),
      pid_(getpid()),
      tag_(NewTag()),
      order_(ServiceName() + ":" + std::to_string(pid_) + ":" + tag_, tag_ + "z",
             [this](std::string line) { Put(std::move(line)); }),
      writer_(folder, FileName(tag_),
              [this](std::string_view reason, std::uint64_t count) { return GapLine(reason, count); }) {}

Recorder* Recorder::InForce() noexcept {
  try {
    const auto settings = CurrentSettings();
    if (settings->history.empty()) return nullptr;
    Recorder* const found = current.load(std::memory_order_acquire);
    if (found != nullptr && found->folder_ == settings->history) return found;
    Recorder* const made = Recordings::Instance().Open(settings->history);
    for (const auto& store : CurrentRegistry()->All()) made->NotRead(*store);
    return made;
  } catch (...) {
    SayLost("no history is recorded: it could not be begun");
    return nullptr;
  }
}

// Recording never fails in the application; what went wrong is a gap of the history (HIST-24).
template <class Action>
void Recorder::Safely(const Action& action) noexcept {
  if (getpid() != pid_) return;  // the child of a fork ends what its parent began
  try {
    const std::lock_guard<std::mutex> lock(Recordings::Instance().mutex);
    action();
  } catch (...) {
    Failed();
  }
}

void Recorder::Failed() noexcept {
  constexpr const char* kWords = "an operation could not be recorded";
  try {
    SayLost(kWords);
    const std::lock_guard<std::mutex> lock(Recordings::Instance().mutex);
    Put(GapLine(kWords, 1));
  } catch (...) {  // nor can that be said
  }
}

// Under the lock, as all below.
void Recorder::Put(std::string line) {
  ended_ = false;
  writer_.PutLine(std::move(line));
  if (threads::MayStart() || writer_.used()) return;
  writer_.PutLine(order_.Line("end", "recording").Written());  // behind the last line of the process, as it seems
}

std::string Recorder::GapLine(std::string_view reason, std::uint64_t count) {
  JsonObject line = order_.Line("gap", "recording");
  line.Text("reason", reason);
  if (count > 0) line.Integer("count", static_cast<std::int64_t>(count));
  return line.Written();
}

std::shared_ptr<Strand> Recorder::NewStrand(std::string_view kind) {
  const std::optional<SpanName> span = telemetry::CurrentSpan();
  return std::make_shared<Strand>(std::string(kind) + " " + std::to_string(++scopes_),
                                  span ? span->trace_id : std::string(), this);
}

std::shared_ptr<Strand> Recorder::StrandOf(LineageScope& scope) {
  std::shared_ptr<Strand>& strand = scope.impl().strand();
  if (strand == nullptr || strand->recorder != this) strand = NewStrand(ToString(scope.kind()));
  return strand;
}

void Recorder::Sent(LineageScope& scope, const std::string& message, const Lineage& lineage) noexcept {
  Safely([&] { order_.Instant(StrandOf(scope), "send", lineage, message); });
}

void Recorder::Received(LineageScope& scope, const std::vector<std::string>& messages,
                        const Lineage& lineage) noexcept {
  Safely([&] {
    const std::shared_ptr<Strand> strand = StrandOf(scope);
    for (const std::string& message : messages) order_.Instant(strand, "receive", std::nullopt, message);
    if (messages.empty()) order_.Instant(strand, "receive", lineage, "stranger-" + order_.NewId());
  });
}

void Recorder::Joined(LineageScope& ended, LineageScope& scope) noexcept {
  Safely([&] { order_.Joined(StrandOf(ended), StrandOf(scope)); });
}

void Recorder::NotRead(const Store& store) noexcept {
  try {
    const bool records = store.records();
    if (store.capabilities().tap || (records && store.shim().NotesReads())) return;
    Safely([&] {
      if (!unread_.insert(store.name()).second) return;
      Put(GapLine(
          "reads of " + store.name() + " are not recorded (" + (records ? store.kind() : "its mode is off") + ")", 0));
    });
  } catch (...) {
    Failed();
  }
}

std::optional<Step> Recorder::Begin(LineageScope* scope, const Lineage& lineage) noexcept {
  std::optional<Step> step;
  Safely([&] { step = order_.Begin(scope == nullptr ? NewStrand("no scope") : StrandOf(*scope), lineage); });
  return step;
}

void Recorder::Finish(Step& step, const std::vector<Told>& told, bool certain) noexcept {
  Safely([&] { order_.End(step, told, certain); });
}

void Recorder::End() noexcept {
  Safely([&] {
    if (ended_) return;
    Put(order_.Line("end", "recording").Written());
    ended_ = true;
  });
  try {
    if (getpid() == pid_) writer_.RecordWriter::End();
  } catch (...) {
    SayLost("the history could not be written to its end");
  }
}

namespace {

// Ends the recording in force, if there is any; it goes on where more is done.
void End() noexcept {
  if (Recorder* const found = current.load()) found->End();
}

// Records what the lower rooms say.
class History final : public Observer {
 public:
  void ScopesJoined(LineageScope& ended, LineageScope& scope) override {
    if (Recorder* const found = Recorder::InForce()) found->Joined(ended, scope);
  }

  std::unique_ptr<WriteObserver> WriteObserved(const ScopePtr& scope, const Store& store,
                                               const Lineage& lineage) override {
    return NoteWrite(scope, store, lineage);
  }

  void ReadBegun(const ReadRequest& read, ReadObservers& observers) override {
    auto noted = NoteRead(*read.store, read.scope);
    if (noted == nullptr) return;
    try {
      observers.push_back(std::move(noted));
    } catch (...) {
      if (Recorder* const found = Recorder::InForce()) found->Failed();
    }
  }

  void StoreJoined(const Store& store) override {
    if (Recorder* const found = Recorder::InForce()) found->NotRead(store);
  }

  // A store may be off from now on, or for a while (HIST-31).
  void SettingsChanged() override {
    Recorder* const found = current.load(std::memory_order_acquire);
    if (found == nullptr) return;
    try {
      if (found->folder() != CurrentSettings()->history) return;
      for (const auto& store : CurrentRegistry()->All()) found->NotRead(*store);
    } catch (...) {
      found->Failed();
    }
  }

  void LineageArrived(LineageScope& scope, const Lineage& lineage) override {
    if (lineage.empty()) return;
    if (Recorder* const found = Recorder::InForce()) found->Received(scope, {}, lineage);
  }

  void LineageReceived(LineageScope& scope, const std::vector<std::string>& messages,
                       const Lineage& lineage) override {
    if (Recorder* const found = Recorder::InForce()) found->Received(scope, messages, lineage);
  }

  std::string MessageNamed() override {
    Recorder* const found = Recorder::InForce();
    return found == nullptr ? std::string() : found->NewMessage();
  }

  void LineageSent(LineageScope& scope, const std::string& message, const Lineage& lineage) override {
    if (Recorder* const found = Recorder::InForce()) found->Sent(scope, message, lineage);
  }

  void EngineStopped() override { End(); }
};

History observer;

}  // namespace

void Listen() noexcept { AddObserver(observer); }

bool Flush(Duration timeout) {
  Recorder* const found = current.load();
  return found == nullptr || found->Flush(timeout);
}

void Forget() noexcept {
  End();
  current.store(nullptr);
}

}  // namespace antipode::history
