package dev.antipode.redis;

import dev.antipode.Lineage;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.RedisCommand;
import java.util.Collection;

/** A command that may write, or the EXEC of a transaction that does: recorded once both replies are there (SHIM-6). */
final class LettuceWrite<K, V, T> extends LettuceAsked<K, V, T> {
  private final WriteCall call;
  private final ReadCall read; // what a transaction read, or null

  LettuceWrite(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      WriteCall call,
      ReadCall read,
      Words wire,
      LettuceShown<K, V, T> shown) {
    super(command, line, call.begins(), wire, shown);
    this.call = call;
    this.read = read;
  }

  @Override
  void ended(Object answerToQuestion) {
    call.answered(answerToQuestion);
    if (sent().times() > 1) {
      call.broke(); // an attempt before was cut off: if this one was refused, that one may have succeeded
    }
    CommandOutput<K, V, T> output = getOutput();
    if (output != null && output.hasError()) {
      call.refused(output.getError());
      return;
    }
    Object reply = output == null ? null : output.get();
    if (reply instanceof TransactionResult all && isInVain(all)) {
      call.didNothing();
    } else {
      call.done(reply instanceof TransactionResult ? Boolean.TRUE : reply);
    }
    if (read != null) {
      if (read.collects()) {
        read.saw(Looks.parsed(answerToQuestion), Lineage.EMPTY);
      }
      read.finish();
    }
  }

  /** A watched key was changed, or every command of the transaction failed. */
  private boolean isInVain(TransactionResult all) {
    Collection<?> replies = all.stream().toList();
    return all.wasDiscarded()
        || (call.isCertain() && !replies.isEmpty() && replies.stream().allMatch(Throwable.class::isInstance));
  }

  @Override
  void failed(boolean mayBeSent) {
    if (mayBeSent) {
      call.broke();
      call.failed();
    } else {
      call.abandon();
    }
  }
}
