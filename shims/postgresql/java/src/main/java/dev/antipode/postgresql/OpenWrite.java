package dev.antipode.postgresql;

import dev.antipode.shim.Write;
import java.util.function.Consumer;

/** One connection's writes to one store that are not settled: shared by all wraps of the connection, whichever ends them. */
final class OpenWrite {
  /** Of the open transaction; null where nothing was sent in it that may write. */
  volatile Write write;

  /** Whether one of its statements was a plain write: then the server need not be asked whether it wrote. */
  boolean certain;

  volatile boolean committing; // another thread may give the connection up meanwhile

  /** Whether the statement on its way is a transaction by itself. */
  boolean alone;

  /** Whether a statement within the open transaction may have committed what came before it (SCOPE-25). */
  boolean mayHaveCommitted;

  boolean mayBePrepared; // what was sent may have prepared the transaction, and nobody told

  /** The lineage that the server was told to put beside rows, in this transaction; null where that may hold no more. */
  String told;

  /** Whether a step is done: what a wrap within the wrap sees of it is a part of it. */
  boolean isBusy;

  /** Whether the connection went back to its pool with it. */
  boolean isLeft;

  /** Whether the pool has ended it: it commits or rolls back, and prepares nothing. */
  boolean isEnded;

  final PreparedWrites prepared = new PreparedWrites();

  /** The write of the open transaction has this end; where another thread, which gave the connection up, told it: none. */
  void end(Consumer<Write> how) {
    Write last = forget();
    if (last != null) {
      how.accept(last);
    }
  }

  private synchronized Write forget() {
    Write last = write;
    write = null;
    certain = committing = alone = mayHaveCommitted = mayBePrepared = isLeft = isEnded = false;
    told = null;
    return last;
  }
}
