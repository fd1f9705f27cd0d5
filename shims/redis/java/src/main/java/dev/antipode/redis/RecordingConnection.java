package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ConnectionState;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisReactiveCommandsImpl;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.push.PushListener;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * A connection of Lettuce whose writes are recorded, in the scope in which they are issued. Made by
 * {@link AntipodeLettuce#wrap}, never by itself. Lettuce's pools look for an interface that it declares itself.
 */
final class RecordingConnection<K, V> extends StatefulRedisConnectionImpl<K, V> implements StatefulRedisConnection<K, V> {
  private final StatefulRedisConnectionImpl<K, V> plain;
  private final Binding binding;
  private final LettuceLine<K, V> line;
  private final LettuceTurns turns = new LettuceTurns();
  // Changed in a turn alone, but where MULTI fails:
  private volatile LettuceTransaction<K, V> transaction;
  private volatile boolean watches;
  // As the application has issued it, which may wait for its turn; null for none:
  private final AtomicReference<RedisCommand<K, V, ?>> multi = new AtomicReference<>();

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
    plain.addListener(new LettuceArrivals(plain, binding, line));
    plain.registerCloseables(new ArrayList<>(), this::ended); // by whomever it is closed
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
    CommandWords words = new LettuceWords(command);
    switch (Commands.name(words)) {
      case "MULTI" -> {
        opens(command);
        alone(command, issued, end -> begin(command, end));
      }
      case "EXEC" -> {
        multi.set(null);
        turns.alone(end -> guarded(command, issued, end, () -> execute(command, end)), () -> pending(issued));
      }
      case "DISCARD" -> {
        multi.set(null);
        alone(command, issued, end -> discard(command, end));
      }
      case "WATCH" -> alone(command, issued, end -> watch(command, end));
      default -> {
        RedisCommand<K, V, T> sent = ObservedCommand.of(command, words, this, issued);
        turns.beside(end -> guarded(sent, issued, end, () -> send(sent, words, end)),
            () -> Commands.classify(words).mayWrite() ? pending(issued) : () -> {});
      }
    }
    return command;
  }

  private void alone(RedisCommand<K, V, ?> command, Context issued, Consumer<Runnable> work) {
    turns.alone(end -> guarded(command, issued, end, () -> work.accept(end)));
  }

  /** Where the command was issued. What is thrown is the command's failure, and ends its turn. */
  private static void guarded(RedisCommand<?, ?, ?> command, Context issued, Runnable end, Runnable work) {
    try (Scope scope = issued.makeCurrent()) {
      work.run();
    } catch (RuntimeException error) {
      end.run();
      command.completeExceptionally(error);
    }
  }

  /** What may write and waits for its turn is pending already (SCOPE-14); what this gives is run when it has begun by itself. */
  private Runnable pending(Context issued) {
    if (!binding.records() || LineageScope.in(issued) == null) {
      return () -> {};
    }
    try (Scope scope = issued.makeCurrent()) {
      WriteCall meanwhile = new WriteCall(binding, true);
      meanwhile.inFlight();
      return meanwhile::abandon;
    }
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
      LettuceReactive.MadeCommand<?, ?, ?> made = CommandWrapper.unwrap(command, LettuceReactive.MadeCommand.class);
      if (made != null) {
        return made.context();
      }
    }
    return Context.current();
  }

  private void send(RedisCommand<K, V, ?> command, CommandWords words, Runnable end) {
    boolean isKept = false;
    try {
      if (command.isDone()) {
        return; // given up before its turn
      }
      if (Commands.name(words).equals("UNWATCH")) {
        super.dispatch(command);
        watches = transaction != null && watches;
        return;
      }
      binding.beside().check(words);
      LettuceTransaction<K, V> open = transaction; // it may end on another thread
      if (open != null) {
        queue(open, command, words);
      } else {
        isKept = sendOne(command, words, end);
      }
    } finally {
      if (!isKept) {
        end.run();
      }
    }
  }

  /** Whether the command keeps its turn, and ends it by itself. */
  private <T> boolean sendOne(RedisCommand<K, V, T> command, CommandWords words, Runnable end) {
    Commands.Kind kind = Commands.classify(words);
    if (kind == Commands.Kind.OTHER) {
      line.sendBy(() -> plain.dispatch(command)); // SELECT, AUTH: what is done again when it reconnects is the plain one's
      return false;
    }
    boolean records = binding.records();
    if (kind == Commands.Kind.READ) {
      ReadCall call = records ? line.call(binding) : null;
      ObservedCommand.isOf(command, call);
      if (call != null) {
        new LettuceRead<>(this, call, command, words, end).start();
        return true;
      }
    } else if (records) {
      WriteCall call = new WriteCall(binding, kind == Commands.Kind.WRITE).with(words);
      try {
        ReadCall read = Commands.mayRead(kind, words) ? line.call(binding) : null;
        LettuceLooks<K, V> first = read == null ? null : new LettuceLooks<>(binding, line, read);
        return LettuceWrite.start(first, line, command, call, mayMulti(), looks -> sendAsked(new LettuceWrite<>(
            command, line, call, words, looks, wire(words, call), shown(command, words, call::sawBeside))), end);
      } catch (RuntimeException error) {
        call.abandon(); // before it was sent
        throw error;
      }
    }
    super.dispatch(binding.beside().concerns(words) ? part(command, words, null, nowhere -> {}) : command);
    return false;
  }

  /** Sends a command of the application that has ours about it. */
  void sendAsked(CommandWithQuestion<K, V, ?> asked) {
    asked.watch();
    super.dispatch(asked);
  }

  /** What is sent in a command's place; null for the command as it is. */
  private CommandWords wire(CommandWords words, WriteCall call) {
    CommandWords wire = binding.beside().wire(words, call);
    return wire == words ? null : wire;
  }

  /** What takes a reply that is not what the application is to get; null where it is. */
  <T> VisibleReplyOutput<K, V, T> shown(RedisCommand<K, V, T> command, CommandWords words, Consumer<Lineage> found) {
    return binding.beside().answers(words) && command.getOutput() != null
        ? new VisibleReplyOutput<>(codec, command.getOutput(), words, binding.beside(), found)
        : null;
  }

  /** Without a question of its own: in a transaction, or where nothing is recorded. */
  private <T> RedisCommand<K, V, T> part(
      RedisCommand<K, V, T> command, CommandWords words, WriteCall call, Consumer<Lineage> found) {
    return new LettucePart<>(command, wire(words, call), shown(command, words, found));
  }

  /** Whether a read may stand in a MULTI of ours: in a WATCH that would end the application's. */
  boolean mayMulti() {
    return !watches && transaction == null && !plain.isMulti() && line.flushes();
  }

  // Transactions

  @Override
  public boolean isMulti() {
    return multi.get() != null;
  }

  /** From its being issued until its end; also where it is given up, or fails, before its turn. */
  private void opens(RedisCommand<K, V, ?> command) {
    if (multi.compareAndSet(null, command) && command instanceof CompleteableCommand<?> future) {
      BiConsumer<Object, Throwable> over = (value, error) -> {
        if (error != null) {
          multi.compareAndSet(command, null);
        }
      };
      future.onComplete(over);
    }
  }

  private void watch(RedisCommand<K, V, ?> command, Runnable end) {
    try {
      if (!command.isDone()) {
        watches = true;
        super.dispatch(command);
      }
    } finally {
      end.run();
    }
  }

  private void begin(RedisCommand<K, V, ?> command, Runnable end) {
    LettuceTransaction<K, V> open = transaction;
    if (open != null) {
      open.nested();
      super.dispatch(command); // the server's to refuse
      end.run();
      return;
    }
    if (command.isDone()) { // given up before its turn
      end.run();
      return;
    }
    ReadCall call = ReadCall.opening(binding);
    LettuceLooks<K, V> looks = call == null ? null : new LettuceLooks<>(binding, line, call);
    Runnable opening = () -> {
      try {
        open(command, new LettuceTransaction<>(binding, line, looks));
      } catch (RuntimeException | Error error) {
        command.completeExceptionally(error);
      } finally {
        end.run();
      }
    };
    if (looks == null) {
      opening.run();
    } else {
      looks.waitFirst(mayMulti(), opening);
    }
  }

  private void open(RedisCommand<K, V, ?> command, LettuceTransaction<K, V> opened) {
    transaction = opened;
    if (command instanceof CompleteableCommand<?> future) {
      BiConsumer<Object, Throwable> over = (value, error) -> {
        if (error == null) {
          return;
        }
        opened.refused(); // what was issued since is executed by itself
        if (transaction == opened) {
          transaction = null;
          opened.unanswered(true);
        }
      };
      future.onComplete(over);
    }
    super.dispatch(command);
  }

  private <T> void queue(LettuceTransaction<K, V> open, RedisCommand<K, V, T> command, CommandWords words) {
    if (Commands.name(words).equals("RESET")) {
      open.reset();
    }
    Commands.Kind kind = Commands.classify(words);
    boolean writes = kind.mayWrite();
    WriteCall write = writes ? open.writes(kind, words) : null;
    ReadCall read = Commands.mayRead(kind, words) ? open.reads() : null;
    open.queued(words, writes);
    Consumer<Lineage> reading = writes || read == null ? nowhere -> {} : read::sawBeside;
    Consumer<Lineage> found = write == null ? reading : write::sawBeside;
    super.dispatch(binding.beside().concerns(words) ? part(command, words, write, found) : command);
  }

  private <T> void execute(RedisCommand<K, V, T> command, Runnable end) {
    LettuceTransaction<K, V> ended = transaction;
    BarrierException refused = ended == null ? null : ended.leaves();
    if (ended != null && (refused != null || command.isDone())) { // given up before its turn: the server must not keep it open
      AsyncCommand<K, V, String> instead = new AsyncCommand<>(new Command<>(CommandType.DISCARD, new StatusOutput<>(codec)));
      RuntimeException reason = refused == null ? new CancellationException() : refused;
      instead.onComplete((value, error) -> command.completeExceptionally(reason));
      discard(instead, end);
      return;
    }
    try {
      if (ended == null || ended.isPlain()) {
        super.dispatch(command);
      } else {
        boolean asks = ended.write() != null ? ended.write().begins() : ended.collects() && binding.mayAsk();
        sendAsked(new LettuceExec<>(command, line, ended, asks));
      }
    } finally {
      transaction = null;
      watches = false;
      end.run();
    }
  }

  private <T> void discard(RedisCommand<K, V, T> command, Runnable end) {
    LettuceTransaction<K, V> ended = transaction;
    try {
      if (ended == null || ended.isPlain()) {
        super.dispatch(command);
      } else {
        sendAsked(new LettuceDiscard<>(command, line, ended));
      }
    } finally {
      transaction = null;
      watches = false;
      end.run();
    }
  }

  // What is the plain connection's

  @Override
  public void setAutoFlushCommands(boolean autoFlush) {
    turns.alone(end -> { // what was issued before leaves as it would have then
      try {
        line.flushes(autoFlush);
        plain.setAutoFlushCommands(autoFlush);
      } finally {
        end.run();
      }
    });
  }

  @Override
  public void flushCommands() {
    Context issued = Context.current();
    turns.alone(end -> {
      line.executedBy(LineageScope.in(issued));
      Iterator<LettuceLooks<K, V>> waiting = line.takeWaiting().iterator();
      flushBehind(waiting, () -> {
        try {
          line.flush();
        } finally {
          end.run();
        }
      });
    }, () -> pending(issued));
  }

  private void flushBehind(Iterator<LettuceLooks<K, V>> waiting, Runnable flush) {
    if (waiting.hasNext() && transaction == null) { // in a transaction nothing can be asked: such reads are unproven
      LettuceLooks<K, V> looks = waiting.next();
      looks.waitFirst(false, () -> {
        looks.endBatched();
        flushBehind(waiting, flush);
      });
    } else {
      flush.run();
    }
  }

  @Override
  public CompletableFuture<Void> closeAsync() {
    binding.marker().unuse(this);
    drop();
    CompletableFuture<Void> closed = plain.closeAsync();
    ended();
    return closed;
  }

  /** The connection is closed: what was never handed over is told so. */
  private void ended() {
    line.flush();
    drop();
  }

  private void drop() {
    LettuceTransaction<K, V> open = transaction;
    if (open != null) {
      transaction = null;
      open.dropped(open.isTorn());
    }
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
