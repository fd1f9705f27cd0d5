package dev.antipode.redis;

import io.lettuce.core.protocol.RedisCommand;

/** The DISCARD of a transaction that would have written or read: what happened is known by its reply. */
final class LettuceDiscard<K, V, T> extends CommandWithQuestion<K, V, T> {
  private final LettuceTransaction<K, V> transaction;

  LettuceDiscard(RedisCommand<K, V, T> command, LettuceLine<K, V> line, LettuceTransaction<K, V> transaction) {
    super(command, line, false, null, null);
    this.transaction = transaction;
  }

  @Override
  void ended(Object answerToQuestion) {
    boolean isRefused = getOutput() != null && getOutput().hasError();
    boolean mayHaveHappened = isRefused || transaction.isTornInside();
    transaction.dropped(mayHaveHappened);
    if (mayHaveHappened) {
      transaction.readAlone();
    }
  }

  @Override
  void failed(boolean mayBeSent) {
    transaction.unanswered(mayBeSent);
  }
}
