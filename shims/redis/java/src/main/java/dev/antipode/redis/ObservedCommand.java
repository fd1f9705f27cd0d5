package dev.antipode.redis;

import dev.antipode.WriteId;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.Read;
import dev.antipode.shim.ReadValue;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.List;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** A read of which dry-run and a recorded history are told what it returned, before the application has it. */
final class ObservedCommand<K, V, T> extends CommandWrapper<K, V, T> {
  private static final Set<String> OF_VALUES = Set.of("GET", "MGET", "EXISTS");

  private final CommandWords words;
  private final Binding binding;
  private final Read read;
  private final RedisCodec<K, V> codec;
  private final List<byte[]> sent; // what is sent once more; null where that is not done (REC-14)
  private final ReplyCopy<K, V, T> heard; // null where the reply's octets are not needed
  private volatile ReadCall call; // null where it is a plain one

  private ObservedCommand(
      RedisCommand<K, V, T> command, CommandWords words, Binding binding, Read read, RedisCodec<K, V> codec) {
    super(command);
    this.words = words;
    this.binding = binding;
    this.read = read;
    this.codec = codec;
    boolean hasOutput = command.getOutput() != null;
    boolean repeats = hasOutput && binding.follows() && CommandWrapper.unwrap(command, AsyncCommand.class) != null;
    this.sent = repeats && ReadRepeater.mayRepeat(binding, words) ? words.copy().stream().map(byte[]::clone).toList() : null;
    this.heard = hasOutput && OF_VALUES.contains(Commands.name(words)) ? new ReplyCopy<>(codec, command.getOutput()) : null;
  }

  /** The command that is sent for one that is issued now: itself where nobody is told of it, or it is no read. */
  static <K, V, T> RedisCommand<K, V, T> of(
      RedisCommand<K, V, T> command, CommandWords words, RecordingConnection<K, V> connection, Context issued) {
    if (Commands.classify(words) != Commands.Kind.READ) {
      return command;
    }
    Read read;
    try (Scope scope = issued.makeCurrent()) {
      read = connection.binding().store().read(false, true).onlyTold();
    }
    if (!read.isTold()) {
      return command;
    }
    if (command instanceof CompleteableCommand<?> future) { // one that the application gives up, or that took too long
      BiConsumer<Object, Throwable> gone = (value, error) -> {
        if (error != null) {
          read.close();
        }
      };
      future.onComplete(gone);
    }
    return new ObservedCommand<>(command, words, connection.binding(), read, connection.line().codec());
  }

  /** Says which call a command is of, if a history is told of it. */
  static void isOf(RedisCommand<?, ?, ?> command, ReadCall call) {
    if (command instanceof ObservedCommand<?, ?, ?> noted) {
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
      read.close();
    } else {
      tell(output.get());
    }
    super.complete();
  }

  private void tell(T value) {
    WriteId covers = call == null ? null : call.covers();
    List<ReadValue> values = CommandEvents.seen(words, heard == null ? value : heard.value()).stream()
        .map(each -> each.depending(covers, null, true)).toList();
    Class<?> kind = super.getOutput().getClass();
    read.returned(sent == null
        ? new ReadReply(binding.server(), values)
        : new ReadReply(binding.server(), values, () -> value, () -> ReadRepeater.again(
            binding, CommandWords.of(sent), reply -> built(reply, kind, codec))));
  }

  /** A reply as another output of this kind makes it; throws for one that is made by more than a codec. */
  private static Object built(Object reply, Class<?> kind, RedisCodec<?, ?> codec) throws ReflectiveOperationException {
    CommandOutput<?, ?, ?> output = (CommandOutput<?, ?, ?>) kind.getConstructor(RedisCodec.class).newInstance(codec);
    LettuceReply.give(reply, output);
    return output.get();
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
    read.close();
    return super.completeExceptionally(reason);
  }

  @Override
  public void cancel() {
    read.close();
    super.cancel();
  }

  /** A reply on its way to the application's output, as it came. */
  private static final class ReplyCopy<K, V, T> extends LettuceReply<K, V, T> {
    private final CommandOutput<K, V, T> wanted;
    private volatile boolean hasCome;

    ReplyCopy(RedisCodec<K, V> codec, CommandOutput<K, V, T> wanted) {
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
