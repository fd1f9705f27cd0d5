package dev.antipode.redis;

import dev.antipode.LineageScope;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.RedisCommand;
import java.util.Collection;

/** The EXEC of a transaction, with the question behind it: what the transaction wrote and read (SHIM-11, SHIM-13). */
final class LettuceExec<K, V, T> extends CommandWithQuestion<K, V, T> {
  private final LettuceTransaction<K, V> transaction;
  private final WriteCall write; // null where it only reads

  LettuceExec(
      RedisCommand<K, V, T> command, LettuceLine<K, V> line, LettuceTransaction<K, V> transaction, boolean asks) {
    super(command, line, asks, null, null);
    this.transaction = transaction;
    this.write = transaction.write();
    if (write != null) {
      write.executes();
    }
  }

  @Override
  void leaves() {
    transaction.leaves(); // where it is in a batch, and refused since it was issued, its reads end so
    if (write != null) {
      write.inFlight();
    }
  }

  @Override
  void executedBy(LineageScope scope) {
    if (write != null) {
      write.executedBy(scope);
    }
  }

  @Override
  void ended(Object answerToQuestion) {
    CommandOutput<K, V, T> output = getOutput();
    String refusal = output != null && output.hasError() ? String.valueOf(output.getError()) : null;
    if (write != null) {
      ended(answerToQuestion, refusal, output == null ? null : output.get());
    }
    boolean isTorn = refusal == null ? transaction.isTornInside() : transaction.isTorn(refusal);
    if (refusal == null && !isTorn) {
      transaction.executed(sent(), answerToQuestion);
    } else if (isTorn) { // else nothing was read, and the application gets that
      transaction.readAlone();
    }
  }

  private void ended(Object answerToQuestion, String refusal, Object reply) {
    write.answered(answerToQuestion);
    if (sent().times() > 1 || transaction.isTorn(refusal)) {
      write.broke(); // an attempt before, or the commands by themselves, may have changed the data
    }
    if (refusal != null) {
      write.refused(refusal);
    } else if (transaction.isTornInside()) {
      write.failed(); // another server may have executed what came before the second MULTI: no position covers that
    } else if (reply instanceof TransactionResult all && isInVain(all)) {
      write.didNothing();
    } else {
      if (reply instanceof TransactionResult all) {
        transaction.replied(all.stream().toList());
      }
      write.done(reply instanceof TransactionResult ? Boolean.TRUE : reply);
    }
  }

  /** A watched key was changed, or every command of the transaction failed. */
  private boolean isInVain(TransactionResult all) {
    Collection<?> replies = all.stream().toList();
    return all.wasDiscarded()
        || (write.isCertain() && !replies.isEmpty() && replies.stream().allMatch(Throwable.class::isInstance));
  }

  @Override
  void failed(boolean mayBeSent) {
    transaction.unanswered(mayBeSent);
  }
}
