package dev.antipode.redis;

import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.RedisCommand;

/** A command that may write: recorded once both replies are there (SHIM-6). */
final class LettuceWrite<K, V, T> extends LettuceAsked<K, V, T> {
  private final WriteCall call;
  private final Words words;

  LettuceWrite(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      WriteCall call,
      Words words,
      Words wire,
      LettuceShown<K, V, T> shown) {
    super(command, line, call.begins(), wire, shown);
    this.call = call;
    this.words = words;
  }

  @Override
  void leaves() {
    call.inFlight();
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
    } else {
      Object reply = output == null ? null : output.get();
      call.says(words, reply);
      call.done(reply);
    }
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
