package dev.antipode.redis;

import dev.antipode.Lineage;
import io.lettuce.core.protocol.RedisCommand;

/**
 * A read that is no part of a MULTI, with the question behind it for who collects (SHIM-13). What was looked at before
 * holds for the connection of the look alone: the next one may lead to a server that is behind.
 */
final class LettuceSeen<K, V, T> extends CommandWithQuestion<K, V, T> {
  private final LettuceLooks<K, V> looks;

  LettuceSeen(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      LettuceLooks<K, V> looks,
      boolean asks,
      CommandWords wire,
      VisibleReplyOutput<K, V, T> shown) {
    super(command, line, asks, wire, shown);
    this.looks = looks;
  }

  @Override
  void ended(Object answerToQuestion) {
    if (getOutput() != null && getOutput().hasError()) {
      return; // the application gets that
    }
    ReadCall call = looks.call();
    if (!looks.isBehind(sent())) {
      call.unproven(LettuceLooks.MADE_ANEW);
    }
    if (call.collects()) {
      call.saw(Looks.parsed(answerToQuestion), Lineage.EMPTY);
    }
    call.finish();
  }

  @Override
  void failed(boolean mayBeSent) {
    // nothing was written
  }
}
