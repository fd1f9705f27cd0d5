package dev.antipode.redis;

import dev.antipode.Lineage;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import java.util.function.Consumer;

/** A reply that is not what the application is to get: without what is ours, it goes on to the application's output. */
final class VisibleReplyOutput<K, V, T> extends LettuceReply<K, V, T> {
  private final CommandOutput<K, V, T> wanted;
  private final CommandWords command;
  private final LineagePlacement beside;
  private final Consumer<Lineage> found;

  /**
   * Goes between.
   *
   * @param wanted the application's
   * @param found told what rested beside the values; null where the reply did not hold it
   */
  VisibleReplyOutput(
      RedisCodec<K, V> codec, CommandOutput<K, V, T> wanted, CommandWords command, LineagePlacement beside,
      Consumer<Lineage> found) {
    super(codec);
    this.wanted = wanted;
    this.command = command;
    this.beside = beside;
    this.found = found;
  }

  @Override
  public void complete(int depth) {
    super.complete(depth);
    if (depth > 0) {
      return;
    }
    try {
      give(shown(command, value(), beside, found), wanted);
    } catch (RuntimeException error) { // as Lettuce has it where an output cannot take a reply
      wanted.setError(error.toString());
    }
  }

  /** A reply, or an error, as the application gets it. */
  static Object shown(CommandWords command, Object reply, LineagePlacement beside, Consumer<Lineage> found) {
    if (reply instanceof ServerError) {
      return reply;
    }
    LineagePlacement.VisibleReply shown = beside.shown(command, reply);
    found.accept(shown.lineage());
    return like(reply, shown.reply());
  }

  @Override
  public T get() {
    return wanted.get();
  }

  @Override
  public void setError(String words) {
    super.setError(words);
    wanted.setError(words);
  }

  @Override
  public boolean hasError() {
    return wanted.hasError();
  }

  @Override
  public String getError() {
    return wanted.getError();
  }
}
