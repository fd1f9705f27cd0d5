// One read, or those of one batch: what it has to wait for, and who wants to know what it depends on.
#ifndef ANTIPODE_REDIS_READ_CALL_H_
#define ANTIPODE_REDIS_READ_CALL_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim/read.h"
#include "antipode/site.h"
#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "binding.h"
#include "judging.h"

namespace antipode::redis {

class ReadCall {
 public:
  // Of a read that is done at once. Null where it is a plain one.
  static std::shared_ptr<ReadCall> CaseShims(Binding& binding, const Site& site);
  // Of a read that is sent later. Null where it is a plain one, whatever becomes of its scope until then.
  static std::shared_ptr<ReadCall> ForSending(Binding& binding, const Site& site);
  // It waits for what the caller wants, and tells nobody what it saw. Null where nothing can be wanted.
  static std::shared_ptr<ReadCall> ForWaiting(Binding& binding, const Site& site);
  // Whether the caller collects what it reads.
  static bool IsCollected(const Binding& binding);
  // Of data that others asked for and the caller takes: it waits for nothing. Null where the caller collects nothing.
  static std::shared_ptr<ReadCall> ForTaking(Binding& binding, const Site& site);
  // Who reads: what the data are to show grows until they are fetched.
  static std::shared_ptr<const Read> Reader(const Binding& binding);
  // One that observers are told of, and nobody else; null where they want to hear of none. Where it is not sure, its
  // values come later, with an EXEC.
  static std::shared_ptr<Read> Told(const Binding& binding, bool is_sure, const Site& site);

  // Whether it waits and collects for the same as this one does.
  bool Serves(const ReadCall& other) const {
    return read_->IsLike(*other.read_) && collects() == other.collects() && ids_ == other.ids_;
  }
  // Whether the same ones collect what it reads.
  bool CollectsLike(const ReadCall& other) const {
    return read_->IsLike(*other.read_) && collects() == other.collects();
  }

  const std::vector<WriteId>& ids() const { return ids_; }
  // Why it is not to be sent, whatever the server has; null where it may be.
  const Error* refusal() const { return refusal_ ? &*refusal_ : nullptr; }
  // It is about to be sent: what it waits for, and its time, begin anew. Whether something was not yet shown to it.
  bool Renew();
  // What a look has shown to it.
  const Lineage& proof() const { return proof_; }
  // Whether somebody wants to know what the values depend on.
  bool collects() const { return read_->collects(); }
  // The epochs whose marks are asked for, the server's own first; empty where no marks are needed.
  std::vector<std::string> Fields() const;
  // The server's own epoch as just seen; whether the look is to be repeated, because it was not known when the marks
  // were read.
  bool Learned(const std::string& epoch);

  // What is missing at the connection's server; nothing where nothing is.
  std::optional<Visibility> Judge(const ServerState& seen) const;
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
  // This one, which others are told of, is covered by what covers it.
  void Covers(std::shared_ptr<Read> told) { told_.push_back(std::move(told)); }
  // What the policies say of a read inside a MULTI that was begun before what it is to show was waited for (SHIM-48).
  Result<void> Past() const;
  // The read is over: what the policies say of a wait in vain, or of a refusal that came when it had been sent.
  Result<void> Finish();

 private:
  using Clock = std::chrono::steady_clock;

  ReadCall(Binding& binding, std::shared_ptr<const Read> read) : binding_(binding), read_(std::move(read)) {}

  static std::shared_ptr<ReadCall> Make(Binding& binding, const Site& site, bool tells);
  void Begin();

  Binding& binding_;
  const std::shared_ptr<const Read> read_;
  std::vector<WriteId> ids_;
  std::optional<Error> refusal_;
  Lineage proof_;
  std::vector<std::shared_ptr<Read>> told_;
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
