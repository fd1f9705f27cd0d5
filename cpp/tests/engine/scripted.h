// A shim whose servers answer when a script says so: a question is held until its answer comes, so that nothing depends
// on when the engine asks (spec/vectors/README.md, "Scripts of the engine").
#ifndef ANTIPODE_TESTS_ENGINE_SCRIPTED_H_
#define ANTIPODE_TESTS_ENGINE_SCRIPTED_H_

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/fakes.h"
#include "vectors.h"

namespace antipode::testing {

// The names that a script has for its writes.
using WriteNames = std::vector<std::pair<WriteId, std::string>>;

// Calls as a channel's thread does, and waits for it.
inline void CallOnThread(const std::function<void()>& call) { std::thread(call).join(); }

// What a server says in answer to a question.
struct Reply {
  std::map<std::string, std::string> says;  // by the write's name, whatever was applied
  std::optional<Ends> applied;
  std::string epoch;
  std::string instance;
  std::string fault;
  bool replaced = false;

  static Reply Of(const Json& step) {
    Reply reply;
    reply.says = step.value("says", reply.says);
    reply.epoch = step.value("epoch", "e1");
    reply.instance = step.value("instance", "i1");
    reply.fault = step.value("fault", "");
    reply.replaced = step.value("replaced", false);
    const Json applied = step.value("applied", Json::object());
    if (applied.is_null()) return reply;
    reply.applied = Ends{{reply.epoch, 0}};
    for (const auto& [name, counter] : applied.items()) {
      (*reply.applied)[name] = std::stoull(counter.get<std::string>());
    }
    return reply;
  }

  // Answers as a shim does: the proofs of the reply first, then a word for each write.
  Answers Answer(Span<const WriteId> ids, Server& server, const WriteNames& names) const {
    if (fault == "silent") return Answers::Unreachable("connection refused");
    if (fault == "own") throw std::system_error(EMFILE, std::generic_category());
    if (fault == "refused") return Answers::Refused("the server refuses");
    if (applied && server.store().capabilities().versions == Versions::kPosition) {
      server.Applied(instance, epoch, *applied);
    }
    if (replaced) CallOnThread([&] { server.Reset(); });
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) answers.push_back(OfWrite(id, names));
    return answers;
  }

 private:
  Visibility OfWrite(const WriteId& id, const WriteNames& names) const {
    for (const auto& [named, name] : names) {
      const auto said = says.find(name);
      if (named == id && said != says.end()) return OfWord(said->second);
    }
    if (!id.is_position() || !applied) return Visibility::NotYet();
    const auto reached = applied->find(id.ordered()->epoch);
    const bool is_there = reached != applied->end() && reached->second >= id.ordered()->counter;
    return is_there ? Visibility::Visible() : Visibility::NotYet();
  }

  static Visibility OfWord(const std::string& word) {
    if (word == "visible") return Visibility::Visible();
    if (word == "not_yet") return Visibility::NotYet();
    if (word == "unanswered") return Visibility::Unanswered("it is loading");
    if (word == "unknown_epoch") return Visibility::UnknownEpoch("it does not know the epoch");
    for (int kind = 0; kind < static_cast<int>(UnprovenKind::kOther); ++kind) {
      const auto each = static_cast<UnprovenKind>(kind);
      if (word == "unproven-" + std::string(ToString(each))) return Visibility::Unproven("the script says so", each);
    }
    EXPECT_EQ(word.substr(0, 8), "unproven");
    return Visibility::Unproven("the script says so");
  }
};

// One server: what it shows, and whether the questions that ask for writes are held.
class ScriptedServer {
 public:
  ScriptedServer(std::string its_name, std::shared_ptr<const WriteNames> names)
      : name(std::move(its_name)), names_(std::move(names)), shows_(Reply::Of(Json::object())) {}

  // Answers the engine's question, which may be held before.
  Answers Ask(Span<const WriteId> ids, Server& server) {
    Reply reply;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto question = std::make_shared<Question>();
      question->ids.assign(ids.begin(), ids.end());
      held_ = holds_all_ || (holds_ && !ids.empty()) ? question : nullptr;
      if (!held_) question->reply = shows_;
      changed_.wait(lock, [&] { return question->reply.has_value(); });
      reply = *question->reply;
    }
    return reply.Answer(ids, server, *names_);
  }

  // Whether a question is held that asks for these writes; lets go one that does not.
  bool IsAskedFor(const std::vector<std::string>& writes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!held_) return false;
    for (const std::string& write : writes) {
      if (!held_->AsksFor(write, *names_)) {
        LetGo(shows_);
        return false;
      }
    }
    return true;
  }

  void Hold() {
    const std::lock_guard<std::mutex> lock(mutex_);
    holds_ = true;
  }

  // Holds nothing any more.
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    holds_ = holds_all_ = false;
    LetGo(shows_);
  }

  // Holds also what asks for nothing; behind that, lets go what would not have been held.
  void HoldAll(bool value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    holds_all_ = value;
    if (!value && !(holds_ && held_ && !held_->ids.empty())) LetGo(shows_);
  }

  void Show(Reply reply) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shows_ = std::move(reply);
  }

  // The question that is held goes, with this reply, which is shown from now on, too.
  void Answer(Reply reply, bool once) {
    const std::lock_guard<std::mutex> lock(mutex_);
    LetGo(reply);
    reply.replaced = false;
    if (!once) shows_ = std::move(reply);
  }

  // The engine's channel is open, or closed.
  void Listen(std::function<void()> on_change) {
    const std::lock_guard<std::mutex> lock(channel_);
    on_change_ = std::move(on_change);
  }

  // Says that something was applied; false where no channel is open.
  bool Push() {
    const std::lock_guard<std::mutex> lock(channel_);
    if (on_change_) CallOnThread(on_change_);
    return static_cast<bool>(on_change_);
  }

  const std::string name;

 private:
  struct Question {
    bool AsksFor(const std::string& write, const WriteNames& names) const {
      return std::any_of(names.begin(), names.end(), [&](const auto& each) {
        return each.second == write && std::find(ids.begin(), ids.end(), each.first) != ids.end();
      });
    }
    std::vector<WriteId> ids;
    std::optional<Reply> reply;
  };

  void LetGo(const Reply& reply) {
    if (!held_) return;
    held_->reply = reply;
    held_.reset();
    changed_.notify_all();
  }

  const std::shared_ptr<const WriteNames> names_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Reply shows_;
  bool holds_ = false;
  bool holds_all_ = false;
  std::shared_ptr<Question> held_;
  std::mutex channel_;
  std::function<void()> on_change_;
};

using ScriptedPtr = std::shared_ptr<ScriptedServer>;

// A channel that says nothing by itself.
class ScriptedChannel final : public Watch {
 public:
  ScriptedChannel(ScriptedPtr server, std::function<void()> on_change) : server_(std::move(server)) {
    server_->Listen(std::move(on_change));
  }
  ~ScriptedChannel() override { server_->Listen(nullptr); }

 private:
  const ScriptedPtr server_;
};

// `said` is what the case says of the store.
class ScriptedShim final : public Shim {
 public:
  explicit ScriptedShim(Json said) : said_(std::move(said)) {}

  static ShimType TypeOf(const Json& said) {
    return {"scripted", typeid(ScriptedShim), [said] { return std::make_unique<ScriptedShim>(said); }};
  }

  Capabilities capabilities() const override {
    Capabilities made =
        said_.value("versions", "position") == "object" ? Capabilities::Objects() : Capabilities::Positions();
    return made.Push(said_.value("push", false)).BlockingWait(said_.value("waits", false));
  }
  Answers Visible(Span<const WriteId> ids, Server& server) override { return Of(server.target())->Ask(ids, server); }
  Answers Wait(Span<const WriteId> ids, Server& server, Duration) override { return Visible(ids, server); }
  Result<std::unique_ptr<Watch>> OpenWatch(Server& server, std::function<void()> on_change) override {
    return std::unique_ptr<Watch>(std::make_unique<ScriptedChannel>(Of(server.target()), std::move(on_change)));
  }
  std::string Address(const std::any& target) const override { return Of(target)->name; }
  Duration OwnPace() const noexcept override { return said_.value("in_turns", false) ? 5ms : 0ms; }

 private:
  static const ScriptedPtr& Of(const std::any& target) { return *std::any_cast<ScriptedPtr>(&target); }

  const Json said_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_SCRIPTED_H_
