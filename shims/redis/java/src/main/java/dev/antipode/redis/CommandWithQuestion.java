package dev.antipode.redis;

import dev.antipode.LineageScope;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.CancellationException;
import java.util.function.BiConsumer;

/**
 * A command of the application with the question behind it: the application has its reply once both are answered. What
 * becomes of the question never reaches the application (SHIM-2).
 */
abstract class CommandWithQuestion<K, V, T> extends CommandWrapper<K, V, T> {
  private final LettuceLine<K, V> line;
  private final boolean asks;
  private final byte[] packed; // null where it is sent as the application gave it
  private final VisibleReplyOutput<K, V, T> shown; // null where the reply is the application's as it comes
  private final LettuceLine.SendTime sent = new LettuceLine.SendTime();
  private boolean isLate;
  private boolean answered; // under the lock of this, as the following
  private boolean settled;
  private boolean over;
  private Object answer;

  /**
   * Wraps a command.
   *
   * @param asks whether the question follows it
   * @param wire what is sent in its place, or null
   * @param shown what takes its reply, or null
   */
  CommandWithQuestion(
      RedisCommand<K, V, T> command,
      LettuceLine<K, V> line,
      boolean asks,
      CommandWords wire,
      VisibleReplyOutput<K, V, T> shown) {
    super(command);
    this.line = line;
    this.asks = asks;
    this.packed = wire == null ? null : Resp.pack(wire.copy().toArray());
    this.shown = shown;
  }

  /** Before it is sent: is told of a future that the application cancels, or that timed out. */
  final void watch() {
    if (getDelegate() instanceof CompleteableCommand<?> future) {
      BiConsumer<Object, Throwable> gone = (value, error) -> gone(error);
      future.onComplete(gone);
    }
  }

  /** It leaves for the server now, or with its batch. */
  void leaves() {
    // told to those who care
  }

  /** The batch that it is in is sent by this scope (SCOPE-24); null for none. */
  void executedBy(LineageScope scope) {
    // told to those that write
  }

  /** Makes it leave at once, though the application may flush by itself by now: it was issued before. */
  final void makeLate() {
    isLate = true;
  }

  final boolean isLate() {
    return isLate;
  }

  /** Both are answered, or the question will not be: null then. Whatever it throws, the application gets. */
  abstract void ended(Object answerToQuestion);

  /**
   * No reply will come.
   *
   * @param mayBeSent whether the server may have got the command
   */
  abstract void failed(boolean mayBeSent);

  final boolean asks() {
    return asks;
  }

  /** On which connection it was sent last, and how often it was. */
  final LettuceLine.SendTime sent() {
    return sent;
  }

  @Override
  public CommandOutput<K, V, T> getOutput() {
    return shown == null ? super.getOutput() : shown;
  }

  @Override
  public void encode(ByteBuf buffer) {
    if (shown != null) {
      shown.reset();
    }
    line.note(sent);
    if (packed == null) {
      super.encode(buffer);
    } else {
      buffer.writeBytes(packed);
    }
  }

  /** An answered command is never sent again, though the application has to wait for the question. */
  @Override
  public synchronized boolean isDone() {
    return answered || over || super.isDone();
  }

  @Override
  public void complete() {
    synchronized (this) {
      if (answered || over) {
        return;
      }
      answered = true;
      if (asks && !settled) {
        line.hold(this);
        return;
      }
    }
    finish();
  }

  /** The question behind it was answered on the same connection; null where it was not, and will not be. */
  final void settle(Object said) {
    synchronized (this) {
      if (settled) {
        return;
      }
      settled = true;
      answer = said;
      if (!answered) {
        return;
      }
    }
    finish();
  }

  private void finish() {
    Object said;
    synchronized (this) {
      if (over) {
        return;
      }
      over = true;
      said = answer;
    }
    line.release(this);
    try {
      ended(said);
    } catch (RuntimeException | Error error) { // Lettuce would keep it to itself, and nobody would end this
      super.completeExceptionally(error);
      return;
    }
    super.complete();
  }

  @Override
  public boolean completeExceptionally(Throwable reason) {
    boolean isAnswered;
    synchronized (this) {
      isAnswered = answered;
      settled |= isAnswered;
    }
    if (isAnswered) { // by the server; it was the question that took too long
      finish();
      return true;
    }
    gone(reason);
    return super.completeExceptionally(reason);
  }

  @Override
  public void cancel() {
    gone(new CancellationException());
    super.cancel();
  }

  private void gone(Throwable reason) {
    synchronized (this) {
      if (reason == null || answered || over) {
        return;
      }
      over = true;
    }
    failed(line.mayBeSent(sent, reason));
  }
}
