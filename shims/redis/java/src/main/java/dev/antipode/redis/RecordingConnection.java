package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ConnectionState;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisReactiveCommandsImpl;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.push.PushListener;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * A connection of Lettuce whose writes are recorded, in the scope in which they are issued. Made by
 * {@link AntipodeLettuce#wrap}, never by itself.
 */
final class RecordingConnection<K, V> extends StatefulRedisConnectionImpl<K, V> {
  private final StatefulRedisConnectionImpl<K, V> plain;
  private final Binding binding;
  private final LettuceLine<K, V> line;
  // Of the one thread that has a transaction, as Lettuce has it:
  private WriteCall transactionWrite;
  private ReadCall transactionRead;
  private volatile boolean watches;

  private RecordingConnection(StatefulRedisConnectionImpl<K, V> plain, Binding binding, LettuceLine<K, V> line) {
    super(
        new LettuceWriter<>(plain.getChannelWriter(), line),
        null, // listeners for pushes go to the plain connection
        plain.getCodec(),
        plain.getTimeout(),
        plain.getOptions().getJsonParser());
    this.plain = plain;
    this.binding = binding;
    this.line = line;
    plain.addListener(new RedisConnectionStateListener() {
      @Override
      public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
        line.lost();
      }
    });
  }

  static <K, V> RecordingConnection<K, V> of(StatefulRedisConnectionImpl<K, V> plain, Binding binding) {
    return new RecordingConnection<>(
        plain, binding, new LettuceLine<>(plain.getChannelWriter(), plain.getCodec()));
  }

  /** The connection that was wrapped. */
  StatefulRedisConnectionImpl<K, V> plain() {
    return plain;
  }

  Binding binding() {
    return binding;
  }

  LettuceLine<K, V> line() {
    return line;
  }

  @Override
  protected RedisReactiveCommandsImpl<K, V> newRedisReactiveCommandsImpl() {
    return new LettuceReactive<>(this, codec);
  }

  // Commands

  @Override
  public <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command) {
    Context issued = issuedIn(command);
    line.inOrder(() -> {
      try (Scope scope = issued.makeCurrent()) {
        send(command);
      } catch (RuntimeException error) {
        command.completeExceptionally(error);
      }
    });
    return command;
  }

  @Override
  public Collection<RedisCommand<K, V, ?>> dispatch(Collection<? extends RedisCommand<K, V, ?>> commands) {
    List<RedisCommand<K, V, ?>> sent = new ArrayList<>(commands.size());
    commands.forEach(each -> sent.add(dispatch(each)));
    return sent;
  }

  /** The caller's context; for a reactive command that is subscribed to outside any scope, where it was made. */
  private static Context issuedIn(RedisCommand<?, ?, ?> command) {
    if (LineageScope.current() == null && Reading.current() == null) {
      LettuceReactive.Made<?, ?, ?> made = CommandWrapper.unwrap(command, LettuceReactive.Made.class);
      if (made != null) {
        return made.context();
      }
    }
    return Context.current();
  }

  private void send(RedisCommand<K, V, ?> command) {
    Words words = new LettuceWords(command);
    switch (Commands.name(words)) {
      case "MULTI" -> begin(command);
      case "EXEC" -> execute(command);
      case "DISCARD" -> {
        super.dispatch(command);
        endTransaction();
      }
      case "WATCH" -> {
        watches = true;
        super.dispatch(command);
      }
      case "UNWATCH" -> {
        super.dispatch(command);
        watches = isMulti() && watches;
      }
      default -> {
        binding.beside().check(words);
        if (isMulti()) {
          queue(command, words);
        } else {
          sendOne(command, words);
        }
      }
    }
  }

  private <T> void sendOne(RedisCommand<K, V, T> command, Words words) {
    Commands.Kind kind = Commands.classify(words);
    if (kind == Commands.Kind.OTHER) {
      line.sendBy(() -> plain.dispatch(command)); // SELECT, AUTH: what is done again when it reconnects is the plain one's
      return;
    }
    boolean records = binding.records();
    if (kind == Commands.Kind.READ) {
      ReadCall call = records ? ReadCall.of(binding) : null;
      if (call != null) {
        new LettuceRead<>(this, call, command, words).start();
        return;
      }
    } else if (records) {
      WriteCall call = new WriteCall(binding, kind == Commands.Kind.WRITE);
      try {
        sendAsked(new LettuceWrite<>(command, line, call, null, wire(words, call), shown(command, words, call::sawBeside)));
      } catch (RuntimeException error) {
        call.abandon(); // before it was sent
        throw error;
      }
      return;
    }
    super.dispatch(binding.beside().concerns(words) ? part(command, words, null, nowhere -> {}) : command);
  }

  /** Sends a command of the application that has ours about it. */
  void sendAsked(LettuceAsked<K, V, ?> asked) {
    super.dispatch(asked);
  }

  /** What is sent in a command's place; null for the command as it is. */
  private Words wire(Words words, WriteCall call) {
    Words wire = binding.beside().wire(words, call);
    return wire == words ? null : wire;
  }

  /** What takes a reply that is not what the application is to get; null where it is. */
  <T> LettuceShown<K, V, T> shown(RedisCommand<K, V, T> command, Words words, Consumer<Lineage> found) {
    return binding.beside().answers(words) && command.getOutput() != null
        ? new LettuceShown<>(codec, command.getOutput(), words, binding.beside(), found)
        : null;
  }

  /** Without a question of its own: in a transaction, or where nothing is recorded. */
  private <T> RedisCommand<K, V, T> part(
      RedisCommand<K, V, T> command, Words words, WriteCall call, Consumer<Lineage> found) {
    return new LettucePart<>(command, wire(words, call), shown(command, words, found));
  }

  /** Whether a read may stand in a MULTI of ours: in a WATCH that would end the application's. */
  boolean mayMulti() {
    return !watches && !isMulti() && !plain.isMulti() && line.flushes();
  }

  // Transactions

  private void begin(RedisCommand<K, V, ?> command) {
    ReadCall call = binding.records() ? ReadCall.of(binding) : null;
    if (call == null || call.ids().isEmpty() || isMulti()) {
      super.dispatch(command);
      transactionRead = call;
      return;
    }
    boolean multi = mayMulti();
    line.shut();
    new LettuceLooks<>(binding, line, call).waitFirst(multi, () -> {
      try {
        super.dispatch(command);
        transactionRead = call;
      } catch (RuntimeException | Error error) {
        command.completeExceptionally(error);
      } finally {
        line.open();
      }
    });
  }

  private void queue(RedisCommand<K, V, ?> command, Words words) {
    Commands.Kind kind = Commands.classify(words);
    boolean writes = kind == Commands.Kind.WRITE || kind == Commands.Kind.MAYBE;
    if (writes && binding.records()) {
      if (transactionWrite == null) {
        transactionWrite = new WriteCall(binding, true);
      }
      if (kind == Commands.Kind.MAYBE) {
        transactionWrite.uncertain();
      }
    }
    WriteCall write = transactionWrite;
    ReadCall read = transactionRead;
    if (!binding.beside().concerns(words)) {
      super.dispatch(command);
    } else if (writes) {
      super.dispatch(part(command, words, write, write == null ? nowhere -> {} : write::sawBeside));
    } else {
      super.dispatch(part(command, words, null, read == null ? nowhere -> {} : read::sawBeside));
    }
  }

  private <T> void execute(RedisCommand<K, V, T> command) {
    WriteCall write = transactionWrite;
    ReadCall read = transactionRead;
    transactionWrite = null;
    endTransaction();
    if (write != null) {
      super.dispatch(new LettuceWrite<>(command, line, write, read, null, null));
    } else if (read != null) {
      super.dispatch(
          new LettuceSeen<>(command, line, read, read.collects() && binding.mayAsk(), null, null));
    } else {
      super.dispatch(command);
    }
  }

  private void endTransaction() {
    if (transactionWrite != null) {
      transactionWrite.abandon();
      transactionWrite = null;
    }
    transactionRead = null;
    watches = false;
  }

  // What is the plain connection's

  @Override
  public void setAutoFlushCommands(boolean autoFlush) {
    line.flushes(autoFlush);
    plain.setAutoFlushCommands(autoFlush);
  }

  @Override
  public void flushCommands() {
    line.inOrder(() -> {
      ReadCall waiting = line.takeWaiting();
      if (waiting == null) {
        line.flush();
        return;
      }
      line.shut();
      new LettuceLooks<>(binding, line, waiting).waitFirst(false, () -> {
        try {
          line.flush();
        } finally {
          line.open();
        }
      });
    });
  }

  @Override
  public CompletableFuture<Void> closeAsync() {
    binding.marker().unuse(this);
    CompletableFuture<Void> closed = plain.closeAsync();
    line.flush(); // a batch that was never handed over is told so
    endTransaction();
    return closed;
  }

  @Override
  public void addListener(PushListener listener) {
    plain.addListener(listener);
  }

  @Override
  public void removeListener(PushListener listener) {
    plain.removeListener(listener);
  }

  @Override
  public void addListener(RedisConnectionStateListener listener) {
    plain.addListener(listener);
  }

  @Override
  public void removeListener(RedisConnectionStateListener listener) {
    plain.removeListener(listener);
  }

  @Override
  public ConnectionState getConnectionState() {
    return plain.getConnectionState();
  }

  @Override
  public ClientOptions getOptions() {
    return plain.getOptions();
  }

  @Override
  public boolean isOpen() {
    return plain.isOpen();
  }

  @Override
  public boolean isClosed() {
    return plain.isClosed();
  }

  @Override
  public void setTimeout(Duration timeout) {
    super.setTimeout(timeout);
    if (plain != null) { // the constructor of Lettuce calls this, too
      plain.setTimeout(timeout);
    }
  }
}
