package dev.antipode.redis;

import io.lettuce.core.protocol.RedisCommand;

/** The DISCARD of a transaction that would have written: what happened is known by its reply. */
final class LettuceDiscard<K, V, T> extends LettuceAsked<K, V, T> {
  private final LettuceTransaction<K, V> transaction;

  LettuceDiscard(RedisCommand<K, V, T> command, LettuceLine<K, V> line, LettuceTransaction<K, V> transaction) {
    super(command, line, false, null, null);
    this.transaction = transaction;
  }

  @Override
  void ended(Object answerToQuestion) {
    transaction.dropped(getOutput() != null && getOutput().hasError());
  }

  @Override
  void failed(boolean mayBeSent) {
    transaction.dropped(transaction.isTorn()); // without EXEC the server ends it with the connection
  }
}
