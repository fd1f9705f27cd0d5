package dev.antipode.redis;

import dev.antipode.LineageScope;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.RedisCommand;
import java.util.function.Consumer;

/** A command that may write: recorded once both replies are there (SHIM-6). */
final class LettuceWrite<K, V, T> extends CommandWithQuestion<K, V, T> {
  private final WriteCall call;
  private final CommandWords words;
  private final LettuceLooks<K, V> looks; // what it waited for; null where it does not read

  LettuceWrite(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      WriteCall call,
      CommandWords words,
      LettuceLooks<K, V> looks,
      CommandWords wire,
      VisibleReplyOutput<K, V, T> shown) {
    super(command, line, call.begins(), wire, shown);
    this.call = call;
    this.words = words;
    this.looks = looks;
  }

  /**
   * Sends a command that may write, and where it may read waits before: one that waits in vain is not sent (SHIM-44).
   *
   * @param multi whether a look may stand in a MULTI
   * @param send sends it, and ends its turn
   * @return whether it keeps its turn, and ends it by itself
   */
  static <K, V> boolean start(
      LettuceLooks<K, V> looks,
      LettuceLine<K, V> line,
      RedisCommand<K, V, ?> command,
      WriteCall call,
      boolean multi,
      Consumer<LettuceLooks<K, V>> send,
      Runnable end) {
    LettuceLooks<K, V> ofBatch = looks == null ? null : line.inBatch(looks);
    if (looks == null || ofBatch != null) {
      if (ofBatch != null) {
        ofBatch.sharedBy(command);
      }
      send.accept(ofBatch);
      return false;
    }
    call.inFlight();
    looks.waitFirst(multi, () -> {
      try {
        if (command.isDone()) {
          call.abandon();
        } else {
          looks.call().finish();
          send.accept(looks);
        }
      } catch (RuntimeException error) {
        call.abandon();
        command.completeExceptionally(error);
      } finally {
        end.run();
      }
    });
    return true;
  }

  @Override
  void leaves() {
    call.inFlight();
  }

  @Override
  void executedBy(LineageScope scope) {
    call.executedBy(scope);
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
    if (looks == null) {
      return;
    }
    if (!looks.isBehind(sent())) {
      looks.call().unproven(LettuceLooks.MADE_ANEW);
    }
    looks.call().finish();
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
