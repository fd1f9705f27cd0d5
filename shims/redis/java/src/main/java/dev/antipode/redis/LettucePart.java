package dev.antipode.redis;

import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;

/** A command that is sent, or whose reply is shown, in another form, without a question of its own. */
final class LettucePart<K, V, T> extends CommandWrapper<K, V, T> {
  private final byte[] packed;
  private final VisibleReplyOutput<K, V, T> shown;

  /** Wraps a command; null is for what it sends and shows itself. */
  LettucePart(RedisCommand<K, V, T> command, CommandWords wire, VisibleReplyOutput<K, V, T> shown) {
    super(command);
    this.packed = wire == null ? null : Resp.pack(wire.copy().toArray());
    this.shown = shown;
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
    if (packed == null) {
      super.encode(buffer);
    } else {
      buffer.writeBytes(packed);
    }
  }
}
