package dev.antipode.redis;

import dev.antipode.history.Recorder;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** A read of which a recorded history is told what it returned, before the application has it (HIST-28). */
final class LettuceNoted<K, V, T> extends CommandWrapper<K, V, T> {
  private static final Set<String> OF_VALUES = Set.of("GET", "MGET", "EXISTS");

  private final Words words;
  private final NotedReads noted;
  private final Heard<K, V, T> heard; // null where the reply's octets are not needed
  private volatile ReadCall call; // null where it is a plain one

  private LettuceNoted(RedisCommand<K, V, T> command, Words words, NotedReads noted, RedisCodec<K, V> codec) {
    super(command);
    this.words = words;
    this.noted = noted;
    boolean isOfValues = command.getOutput() != null && OF_VALUES.contains(Commands.name(words));
    this.heard = isOfValues ? new Heard<>(codec, command.getOutput()) : null;
  }

  /** The command that is sent for one that is issued now: itself where no history is recorded, or it is no read. */
  static <K, V, T> RedisCommand<K, V, T> of(
      RedisCommand<K, V, T> command, Words words, RecordingConnection<K, V> connection, Context issued) {
    if (!Recorder.isOn() || Commands.classify(words) != Commands.Kind.READ) {
      return command;
    }
    NotedReads noted;
    try (Scope scope = issued.makeCurrent()) {
      noted = NotedReads.of(connection.binding());
    }
    if (noted == null) {
      return command;
    }
    if (command instanceof CompleteableCommand<?> future) { // one that the application gives up, or that took too long
      BiConsumer<Object, Throwable> gone = (value, error) -> {
        if (error != null) {
          noted.failed();
        }
      };
      future.onComplete(gone);
    }
    return new LettuceNoted<>(command, words, noted, connection.line().codec());
  }

  /** Says which call a command is of, if a history is told of it. */
  static void isOf(RedisCommand<?, ?, ?> command, ReadCall call) {
    if (command instanceof LettuceNoted<?, ?, ?> noted) {
      noted.call = call;
    }
  }

  @Override
  public CommandOutput<K, V, T> getOutput() {
    return heard == null ? super.getOutput() : heard;
  }

  @Override
  public void encode(ByteBuf buffer) {
    if (heard != null) {
      heard.reset(); // it may be sent again
    }
    super.encode(buffer);
  }

  @Override
  public void complete() {
    CommandOutput<K, V, T> output = getOutput();
    if (output == null || output.hasError() || (heard != null && !heard.hasCome)) { // of a transaction that was discarded
      noted.failed();
    } else {
      noted.saw(words, heard == null ? output.get() : heard.value());
      noted.over(call == null ? null : call.covers());
    }
    super.complete();
  }

  // What is asked of the application's future has to be asked of that itself: it can be cancelled there.

  @Override
  public void onComplete(Consumer<? super T> action) {
    if (getDelegate() instanceof CompleteableCommand<?>) {
      future().onComplete(action);
    } else {
      super.onComplete(action);
    }
  }

  @Override
  public void onComplete(BiConsumer<? super T, Throwable> action) {
    if (getDelegate() instanceof CompleteableCommand<?>) {
      future().onComplete(action);
    } else {
      super.onComplete(action);
    }
  }

  @SuppressWarnings("unchecked") // of the same reply
  private CompleteableCommand<T> future() {
    return (CompleteableCommand<T>) getDelegate();
  }

  @Override
  public boolean completeExceptionally(Throwable reason) {
    noted.failed();
    return super.completeExceptionally(reason);
  }

  @Override
  public void cancel() {
    noted.failed();
    super.cancel();
  }

  /** A reply on its way to the application's output, as it came. */
  private static final class Heard<K, V, T> extends LettuceReply<K, V, T> {
    private final CommandOutput<K, V, T> wanted;
    private volatile boolean hasCome;

    Heard(RedisCodec<K, V> codec, CommandOutput<K, V, T> wanted) {
      super(codec);
      this.wanted = wanted;
    }

    @Override
    public void complete(int depth) {
      super.complete(depth);
      if (depth > 0) {
        return;
      }
      hasCome = true;
      try {
        give(super.value(), wanted);
      } catch (RuntimeException error) { // as Lettuce has it where an output cannot take a reply
        wanted.setError(error.toString());
      }
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
}
