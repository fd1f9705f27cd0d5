/// \file
/// The shim contract: what a datastore owes Antipode (spec SHIM).
///
/// A shim says what its store can do and answers one question; the core does deadlines, parallel waits, polling, single
/// flight and overload.
#ifndef ANTIPODE_SHIM_SHIM_H_
#define ANTIPODE_SHIM_SHIM_H_

#include <any>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/shim/span.h"
#include "antipode/verdict.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

class Server;
class Store;

/// What a store calls a write.
enum class Versions {
  kPosition,  ///< A place in its log, with an epoch.
  kObject,    ///< A version of the object, which compares.
  kOpaque,    ///< A mark of the object's version, equal or not.
};

/// Where a lineage can rest beside its value, in the same atomic operation.
enum class Rest { kField, kEnvelope, kNative };

/// How ended epochs are decided.
enum class Marks { kNone, kNative, kInBand };

/// The word: `position`, `object`, `opaque`.
std::string_view ToString(Versions versions) noexcept;

/// What a kind of store can do; each value obliges the shim (SHIM-18).
struct Capabilities {
  Versions versions = Versions::kObject;
  /// `Watch` tells when a server has changed.
  bool push = false;
  /// `Wait` blocks at the server until a write is visible.
  bool blocking_wait = false;
  /// Deletes leave a version behind; without, they are answered unproven.
  bool tombstones = false;
  /// Where a lineage can rest beside its value in the same atomic operation.
  std::vector<Rest> rest;
  /// Queues: arrival can be observed, so that writes may be tracked.
  bool tap = false;
  /// How ended epochs are decided.
  Marks marks = Marks::kNone;

  static Capabilities Positions() { return Of(Versions::kPosition); }
  static Capabilities Objects() { return Of(Versions::kObject); }
  static Capabilities Opaques() { return Of(Versions::kOpaque); }

  // These change this value and return it, so that a shim says all in one line.
  Capabilities& Push(bool value) { return Set(push, value); }
  Capabilities& BlockingWait(bool value) { return Set(blocking_wait, value); }
  Capabilities& Tombstones(bool value) { return Set(tombstones, value); }
  Capabilities& RestsIn(std::vector<Rest> places) { return Set(rest, std::move(places)); }
  Capabilities& Tap(bool value) { return Set(tap, value); }
  Capabilities& MarkedBy(Marks value) { return Set(marks, value); }

 private:
  static Capabilities Of(Versions versions) {
    Capabilities made;
    made.versions = versions;
    return made;
  }
  template <class T>
  Capabilities& Set(T& member, T value) {
    member = std::move(value);
    return *this;
  }
};

/// What a shim gives back for a question: an answer a write, in order, or why there is none.
class Answers {
 public:
  enum class Kind {
    kAnswered,
    kUnreachable,  ///< The server is out of reach: it may be back in a moment (BAR-26).
    kRefused,      ///< The server's own answer was an error: the writes are unproven with its words (BAR-13).
  };

  // NOLINTNEXTLINE(google-explicit-constructor): answers are what a shim returns.
  Answers(std::vector<Visibility> answers) : answers_(std::move(answers)) {}

  /// The server cannot be reached; the words of its client.
  static Answers Unreachable(std::string words) { return {Kind::kUnreachable, std::move(words)}; }

  /// The server is there and does not answer the question; its own words.
  static Answers Refused(std::string words, UnprovenKind why = UnprovenKind::kOther) {
    return {Kind::kRefused, std::move(words), why};
  }

  Kind kind() const noexcept { return kind_; }
  const std::vector<Visibility>& answers() const noexcept { return answers_; }
  const std::string& words() const noexcept { return words_; }
  /// Where it is refused: what keeps the writes from being proved.
  UnprovenKind why() const noexcept { return why_; }

 private:
  Answers(Kind kind, std::string words, UnprovenKind why = UnprovenKind::kOther)
      : kind_(kind), words_(std::move(words)), why_(why) {}

  Kind kind_ = Kind::kAnswered;
  std::vector<Visibility> answers_;
  std::string words_;
  UnprovenKind why_ = UnprovenKind::kOther;
};

/// A live push channel to one server. Its end (the destructor) may be called while it calls back on another thread.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

  /// A descriptor that becomes readable when something was pushed; -1 where another thread calls back.
  virtual int Descriptor() const noexcept { return -1; }

  /// Reads what was pushed, without blocking, and calls `on_change` if anything changed; fails where it is broken.
  virtual Result<void> Pump() { return {}; }
};

/// What knows one kind of store. One instance serves one named store of this process.
///
/// All that asks a server is called by the engine's one thread for that server, never concurrently for the same server
/// (but for `Renew`), and never in a request. It may block for `server.AskTimeout()` at most. What it throws is taken
/// for `Answers::Refused`.
class Shim {
 public:
  Shim() = default;
  Shim(const Shim&) = delete;
  Shim& operator=(const Shim&) = delete;
  virtual ~Shim() = default;

  virtual Capabilities capabilities() const = 0;

  /// One answer a write, in order. Never guesses: what cannot be proved is unproven, with the reason.
  ///
  /// `ids` may be empty: a sign of life is asked for. A positional shim calls `server.Applied(…)` with what the same
  /// reply proved, so that one question releases everybody up to there.
  virtual Answers Visible(Span<const WriteId> ids, Server& server) = 0;

  /// Opens a push channel that calls `on_change` whenever something was applied at the server (`push`).
  ///
  /// Null where this server cannot push: it is polled, and said so once. An error is a server out of reach.
  virtual Result<std::unique_ptr<Watch>> OpenWatch(Server& server, std::function<void()> on_change);

  /// Like `Visible`, but blocks at the server up to `timeout` for the first of the writes (`blocking_wait`).
  ///
  /// One that can end early looks at `server.Interrupted()`: somebody new waits for another write.
  virtual Answers Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds timeout);

  /// Gives up the connection to a server (`server.session`).
  virtual void Close(Server& server) noexcept;

  /// Whether `Renew` opens the next connection beside the one that answers (BAR-69).
  virtual bool Renews() const noexcept { return false; }

  /// Opens a connection, and returns what is to be `server.session`; empty, or whatever is thrown, where it could not.
  ///
  /// It is called on a thread of its own while the server is asked by the connection that is there, so it changes
  /// nothing of the server or the shim. What it returned ends by its own destructor, on any thread.
  virtual std::any Renew(const Server& server);

  /// A name for the server behind a client or URL, for results and errors; without credentials.
  virtual std::string Address(const std::any& target) const;

  /// Whether a listed server's answers speak for a wrapped client's own one (BAR-22): by default where they have one
  /// address.
  virtual bool SpeaksFor(const std::any& listed, const std::any& own) const { return Address(listed) == Address(own); }

  /// For stores that neither push nor block: the shim itself spaces its questions, object by object, and `Visible`
  /// answers between them from the last one. It is called so often while somebody waits, without back-off (BAR-38).
  virtual std::chrono::nanoseconds OwnPace() const noexcept { return std::chrono::nanoseconds::zero(); }

  /// Whether its wrapped clients tell a recorded history of their reads (by `Read`, HIST-31).
  virtual bool NotesReads() const noexcept { return false; }
};

/// A kind of store: its word in results and spans (`kv`), and how its shim is made for one named store.
struct ShimType {
  std::string kind;
  std::type_index type;
  std::function<std::unique_ptr<Shim>()> make;

  template <class T>
  static ShimType Of(std::string kind) {
    return {std::move(kind), typeid(T), [] { return std::make_unique<T>(); }};
  }
};

/// Makes a kind of store known to this process; the same once more is harmless, another shim under its name is not
/// (kConfiguration).
Result<void> RegisterShim(ShimType type);

/// `antipode::Register<KvShim>("kv")`, once, in main.
template <class T>
Result<void> Register(std::string kind) {
  return RegisterShim(ShimType::Of<T>(std::move(kind)));
}

/// The kind of store of this name; kConfiguration where nobody registered it.
Result<ShimType> FindShim(std::string_view kind);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_SHIM_H_
