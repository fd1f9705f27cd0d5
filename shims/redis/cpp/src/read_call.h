// One read, or those of one batch: what it has to wait for, and who wants to know what it depends on.
#ifndef ANTIPODE_REDIS_READ_CALL_H_
#define ANTIPODE_REDIS_READ_CALL_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/shim/wait_on_read.h"
#include "antipode/site.h"
#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "binding.h"
#include "judging.h"
#include "noting.h"

namespace antipode::redis {

// Who reads: what the data are to show grows until they are fetched.
struct Taker {
  static Taker Current() { return {CurrentScope(), CurrentReading()}; }
  // The writes to this store that data fetched now are to show; none where a read of this connection waits for nothing.
  // Fails, by the policies, where they stand under a misspelt name of the store.
  Result<std::vector<WriteId>> Wants(const Binding& binding) const {
    return Required(*binding.store, reading, scope, binding.waits());
  }

  ScopePtr scope;
  std::shared_ptr<ReadingBlock> reading;
};

class ReadCall {
 public:
  // Of a read that is done at once. Null where it is a plain one.
  static std::shared_ptr<ReadCall> For(Binding& binding, const Site& site);
  // Of a read that is sent later. Null where it is a plain one, whatever becomes of its scope until then.
  static std::shared_ptr<ReadCall> ForSending(Binding& binding, const Site& site);
  // It waits for what the caller wants, and tells nobody what it saw. Null where nothing can be wanted.
  static std::shared_ptr<ReadCall> ForWaiting(Binding& binding, const Site& site);
  // Whether it waits and collects for the same as this one does.
  bool Serves(const ReadCall& other) const {
    return scope_ == other.scope_ && taker_.reading == other.taker_.reading && collects() == other.collects() &&
           ids_ == other.ids_;
  }

  const std::vector<WriteId>& ids() const { return ids_; }
  // Why it is not to be sent, whatever the server has; null where it may be.
  const Error* refusal() const { return refusal_ ? &*refusal_ : nullptr; }
  // It is about to be sent: what it waits for, and its time, begin anew. Whether something was not yet shown to it.
  bool Renew();
  // What a look has shown to it.
  const Lineage& proof() const { return proof_; }
  // Whether somebody wants to know what the values depend on.
  bool collects() const { return reading_ != nullptr || merges_; }
  // The epochs whose marks are asked for, the server's own first; empty where no marks are needed.
  std::vector<std::string> Fields() const;
  // The server's own epoch as just seen; whether the look is to be repeated, because it was not known when the marks
  // were read.
  bool Learned(const std::string& epoch);

  // What is missing at the connection's server; nothing where nothing is.
  std::optional<Visibility> Judge(const Seen& seen) const;
  // After a look: whether another one is to follow; it sleeps until then, or until the engine saw the writes there.
  bool Again(const std::optional<Visibility>& trouble);
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  // No answer came by then on the connection of the read itself.
  void Late();
  // The server refuses to say where it is.
  void Refused(const std::string& words);

  // Values were read at this place in replication; nothing: at one that is not known.
  void Saw(const std::optional<Replication>& now);
  // What rested beside a value that was read.
  void SawBeside(const Beside& beside);
  // A recorded history is told of it by these.
  void ToldBy(std::shared_ptr<NotedReads> noted) { noted_ = std::move(noted); }
  // What the policies say of a read inside a MULTI that was begun before what it is to show was waited for (SHIM-48).
  Result<void> Past() const;
  // The read is over: what the policies say of a wait in vain, or of a refusal that came when it had been sent.
  Result<void> Finish();

 private:
  using Clock = std::chrono::steady_clock;

  ReadCall(Binding& binding, const Site& site) : binding_(binding), site_(site), taker_(Taker::Current()) {}

  static std::shared_ptr<ReadCall> Make(Binding& binding, const Site& site, bool tells);
  void Begin();

  Binding& binding_;
  const Site site_;
  const Taker taker_;
  const ScopePtr scope_ = taker_.scope;
  std::shared_ptr<ReadingBlock> reading_;  // that is told what was read
  std::vector<WriteId> ids_;
  std::optional<Error> refusal_;
  Lineage proof_;
  std::shared_ptr<NotedReads> noted_;
  bool merges_ = false;
  std::string epoch_;
  std::optional<Visibility> trouble_;
  std::chrono::nanoseconds timeout_{};
  Clock::time_point began_{};
  Clock::time_point deadline_{};
  std::chrono::nanoseconds backoff_{};
};

using ReadPtr = std::shared_ptr<ReadCall>;

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_READ_CALL_H_
