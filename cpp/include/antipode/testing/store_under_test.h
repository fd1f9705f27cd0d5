/// \file
/// What a store gives the conformance kit: a few primitives over two regions of real servers (spec SHIM-18, SHIM-33).
///
/// A primitive that is not given fails the cases that need it. Such cases go into `exceptions`, each with its reason; a
/// listed case that passes fails, so that the list cannot go stale. Cases that a capability of the shim excludes (a
/// store of objects has no positions) are skipped, and say so.
#ifndef ANTIPODE_TESTING_STORE_UNDER_TEST_H_
#define ANTIPODE_TESTING_STORE_UNDER_TEST_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/lineage.h"
#include "antipode/result.h"
#include "antipode/shim/shim.h"

namespace antipode::testing {

/// A case has failed. Thrown inside the kit alone: its runner makes it the case's outcome.
class CaseFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a wrapped client's read gave: a value, nothing, or what Antipode said instead (BAR-51).
struct ReadUnderTest {
  std::optional<std::string> value;
  std::optional<Error> error;
};

/// An open transaction of the wrapped client at the primary.
class TransactionUnderTest {
 public:
  virtual ~TransactionUnderTest() = default;
  virtual void Read(const std::string& key) = 0;
  virtual void Write(const std::string& key, const std::string& value) = 0;
};

/// Ways to read a key's value, or to write one, each by its name.
using WaysToRead = std::map<std::string, std::function<ReadUnderTest(const std::string& key)>>;
using WaysToWrite = std::map<std::string, std::function<void(const std::string& key, const std::string& value)>>;

/// One more wrapped client of a server; it is closed with this object.
class ClientUnderTest {
 public:
  virtual ~ClientUnderTest() = default;
  /// The usual way to read, and those in which a shim cannot be sure that something is read: functions, scripts, texts
  /// of several statements.
  virtual WaysToRead Reads() = 0;
  /// Opens what shows the key as it is now for as long as this client lives: a cursor, a snapshot, a result that is
  /// read in parts. Returns ways to read from them.
  virtual std::map<std::string, std::function<ReadUnderTest()>> PastMoments(const std::string& key);
};

/// One store in two regions or more, in the words of the kit. Values and keys are short ASCII texts.
///
/// Servers are named by texts. `primary` takes the writes (region A, at first); `replicas` are those that readers of
/// region B may use. All clients of one `Begin` join one store of this process, called `name`. A primitive that fails
/// says so by `Fail`.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;

  /// What the shim declares.
  virtual Capabilities capabilities() const = 0;
  /// Cases that this store cannot pass, each with its reason, as on the store's page.
  virtual std::map<std::string, std::string> exceptions() const { return {}; }

  /// The store's logical name.
  std::string name = "under-test";
  /// Within this what has to come true does, on a loaded machine.
  std::chrono::nanoseconds patience = std::chrono::seconds(20);
  /// What a barrier is given which must not pass.
  std::chrono::nanoseconds brief = std::chrono::milliseconds(300);
  /// Past its deadline by so much a barrier counts as hanging, on a loaded machine.
  std::chrono::nanoseconds slack = std::chrono::seconds(5);
  /// What the error or log line must hold where rights are missing: the grant (`WriteWithoutRights`).
  std::string rights_cure;
  /// What the error must hold where a topology is refused (`WrapUnfit`).
  std::string unfit_cure;

  // Always needed

  /// The server that takes writes now.
  virtual std::string primary() const = 0;
  /// The servers that readers of region B use, and that `Begin` lists as replicas; one at least, two for most cases,
  /// the one with the least lag first. The same all the time: after a promotion one of them is the primary.
  virtual std::vector<std::string> replicas() const = 0;
  /// A case begins, in a registry of its own: wraps a client at every server, under `name`, with the replicas of region
  /// B.
  virtual void Begin() = 0;
  /// A case has ended: links are healed, lags as at first, clients closed. `spoiled`: the case promoted, restarted or
  /// re-pointed servers; the first order is to be restored, or the servers made anew.
  virtual void Recover(bool spoiled) = 0;
  /// Writes by the wrapped client at the primary, in the current scope. Called by several threads at once.
  virtual void Write(const std::string& key, const std::string& value) = 0;
  /// What a server has now, without Antipode; nothing where it has nothing. The truth that barriers are held to. For a
  /// queue: the value if the message has arrived there.
  virtual std::optional<std::string> Look(const std::string& key, const std::string& at) = 0;

  // Where the store keeps values

  /// Reads by the wrapped client of a server, in the current scope and block of reads.
  virtual ReadUnderTest Read(const std::string& key, const std::string& at);
  /// Deletes by the wrapped client at the primary.
  virtual void Delete(const std::string& key);
  /// Writes at the primary without Antipode, as an old service would.
  virtual void RawWrite(const std::string& key, const std::string& value);
  /// A wrapped operation that may write and changes nothing: the deletion of what is not there.
  virtual void WriteNothing();
  /// A transaction of the wrapped client: commits where `work` returns true, else rolls back.
  virtual void Transaction(const std::function<bool(TransactionUnderTest& transaction)>& work);
  /// Ways to commit a write inside what the client takes for an open transaction: each writes by the wrapped client at
  /// the primary, commits in a manner that leaves a transaction open (several statements in one text, `COMMIT AND
  /// CHAIN`), and rolls that back.
  virtual WaysToWrite CommitsInside();

  // More clients

  /// Wraps another client of a server under `name`, with these replicas, or without.
  virtual std::unique_ptr<ClientUnderTest> WrapClient(const std::string& server,
                                                      std::optional<std::vector<std::string>> replicas,
                                                      bool wait_on_read);
  /// Wraps a client of one server under `name`, without replicas, and does not use it; false where a client connects
  /// when it is made.
  virtual bool WrapUnused(const std::string& server);
  /// The port of the loopback interface at which Antipode's own connection finds a server.
  virtual int PortOf(const std::string& server);
  /// Registers `name` with one replica alone: this server, reached at another port.
  virtual void RegisterAt(const std::string& server, int port);

  // Links and servers

  /// From now on writes reach this replica so much later.
  virtual void SetLag(const std::string& replica, std::chrono::nanoseconds lag);
  /// Nothing reaches this replica any more, and it still answers, until `Heal`.
  virtual void Partition(const std::string& replica);
  /// The link to this replica carries again. Need not wait until it has caught up.
  virtual void Heal(const std::string& replica);
  /// This server does not answer any more (SIGSTOP), until `Thaw`.
  virtual void Freeze(const std::string& server);
  virtual void Thaw(const std::string& server);
  /// The server's process ends and starts again with what it had; returns when it answers and data flow.
  virtual void Restart(const std::string& server);
  /// The replica follows another server from now on; returns when data flow.
  virtual void Repoint(const std::string& replica, const std::string& source);
  /// The replica becomes the primary, and the other replicas follow it; returns when data flow again. Without `lost`
  /// whatever was written arrives first. With it: once nothing of the primary's leaves any more `lost` is called, which
  /// writes by `Write`, and what it wrote never arrives anywhere.
  virtual void Promote(const std::string& replica, const std::function<void()>& lost = nullptr);
  /// Returns when marks in the store prove these writes beyond the present epoch. Only for stores with marks in band.
  virtual void WaitMarked(const Lineage& lineage);

  // Troubles

  /// Sends a wrapped write whose answer never comes; whether the client told of an error. Leaves the store usable.
  virtual bool WriteWithUnknownOutcome(const std::string& key, const std::string& value);
  /// Sends a wrapped write that the server refuses; whether the client told of an error.
  virtual bool WriteRefused(const std::string& key);
  /// Wraps a client whose user may write but lacks a right that Antipode needs, and writes by it. Either fails with
  /// kUnfitStore (with `rights_cure` in it), or writes, and logs `rights_cure`.
  virtual Result<void> WriteWithoutRights(const std::string& key, const std::string& value);
  /// Wraps a client in a topology in which positions or versions lie; has to fail with kUnfitStore.
  virtual Result<void> WrapUnfit();

  // What the cases use

  /// Ends the case as failed.
  [[noreturn]] static void Fail(const std::string& words) { throw CaseFailed(words); }
  static void Check(bool holds, const std::string& words) {
    if (!holds) Fail(words);
  }

  /// The replica with the least lag.
  std::string near() const { return replicas().front(); }
  /// Another replica, with more lag.
  std::string far() const;
  /// A key that nobody has used.
  static std::string NewKey(const std::string& word = "key");
  /// Writes in a scope of its own; the lineage that it left.
  Lineage Written(const std::string& key, const std::string& value = "v");
  /// A barrier on this store whose policies let everything go on; fails where it takes longer than its deadline.
  BarrierResult Judge(const Lineage& lineage, std::chrono::nanoseconds timeout) const;
  BarrierResult Judge(const Lineage& lineage) const { return Judge(lineage, patience); }
  /// Whether such a barrier passed.
  bool Passes(const Lineage& lineage) const { return Judge(lineage).satisfied(); }
  bool PassesBriefly(const Lineage& lineage) const { return Judge(lineage, brief).satisfied(); }
  /// The verdict of such a barrier.
  Verdict VerdictOf(const Lineage& lineage, std::chrono::nanoseconds timeout) const;
  /// Whether these servers (all replicas, by default) have this value now.
  bool Shows(const std::string& key, const std::optional<std::string>& value, std::vector<std::string> servers = {});
  /// Waits for a condition, with `patience`.
  void Until(const std::function<bool()>& condition, const std::string& what) const;
  /// How many barriers wait for this store now.
  std::int64_t Parked() const;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTING_STORE_UNDER_TEST_H_
