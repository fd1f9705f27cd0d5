package dev.antipode.redis;

import dev.antipode.Lineage;
import io.lettuce.core.protocol.RedisCommand;

/** A read, or the EXEC of a transaction that only reads, with the question behind it for who collects (SHIM-13). */
final class LettuceSeen<K, V, T> extends LettuceAsked<K, V, T> {
  private final ReadCall call;

  LettuceSeen(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      ReadCall call,
      boolean asks,
      Words wire,
      LettuceShown<K, V, T> shown) {
    super(command, line, asks, wire, shown);
    this.call = call;
  }

  @Override
  void ended(Object answerToQuestion) {
    if (getOutput() != null && getOutput().hasError()) {
      return; // the application gets that
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
