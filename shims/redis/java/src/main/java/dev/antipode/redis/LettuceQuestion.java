package dev.antipode.redis;

import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** A command of ours among the application's. Its reply, an error reply too, is given as it came. */
final class LettuceQuestion<K, V> extends Command<K, V, Object> {
  private final byte[] packed;
  private final LettuceReply<K, V, Object> reply;
  private final LettuceLine<K, V> line;
  private final LettuceLine.SendTime sent;
  private final Consumer<Object> ended;
  private final AtomicBoolean over = new AtomicBoolean();

  /** No reply will come. */
  record Failure(Throwable reason) {}

  /** No reply came in time, and none is waited for any more. */
  static final Failure LATE = new Failure(new TimeoutException("the server does not answer"));

  private record Name(byte[] octets) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return octets;
    }

    @Override
    public String toString() {
      return new String(octets, StandardCharsets.ISO_8859_1);
    }
  }

  /**
   * A command.
   *
   * @param sent told on which connection it goes out
   * @param ended told its reply, or a Failure; once, mostly on the thread that reads the connection
   */
  LettuceQuestion(
      RedisCodec<K, V> codec,
      LettuceLine<K, V> line,
      LettuceLine.SendTime sent,
      CommandWords words,
      Consumer<Object> ended) {
    this(new LettuceReply<>(codec), line, sent, words, ended);
  }

  private LettuceQuestion(
      LettuceReply<K, V, Object> reply,
      LettuceLine<K, V> line,
      LettuceLine.SendTime sent,
      CommandWords words,
      Consumer<Object> ended) {
    super(new Name(words.get(0)), reply);
    this.packed = Resp.pack(words.copy().toArray());
    this.reply = reply;
    this.line = line;
    this.sent = sent;
    this.ended = ended;
  }

  @Override
  public void encode(ByteBuf buffer) {
    reply.reset();
    line.note(sent);
    buffer.writeBytes(packed);
  }

  @Override
  public void complete() {
    super.complete();
    end(reply.value());
  }

  @Override
  public boolean completeExceptionally(Throwable reason) {
    boolean isFirst = super.completeExceptionally(reason);
    end(new Failure(reason));
    return isFirst;
  }

  @Override
  public void cancel() {
    super.cancel();
    end(new Failure(new CancellationException()));
  }

  /** Its time is over: it is not sent again. */
  void late() {
    super.cancel();
    end(LATE);
  }

  private void end(Object with) {
    if (over.compareAndSet(false, true)) {
      ended.accept(with);
    }
  }
}
