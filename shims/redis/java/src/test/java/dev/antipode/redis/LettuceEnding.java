package dev.antipode.redis;

import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.util.concurrent.atomic.AtomicInteger;

/** A SET during which the connection is closed, as another thread may do at any step. */
final class LettuceEnding {
  private LettuceEnding() {}

  /** Issues it; the connection is closed when its name is looked at for the nth time. */
  static RedisFuture<String> at(int step, StatefulRedisConnection<String, String> connection) {
    AtomicInteger looks = new AtomicInteger();
    ProtocolKeyword name = new ProtocolKeyword() {
      @Override
      public byte[] getBytes() {
        if (looks.incrementAndGet() == step) {
          connection.closeAsync();
        }
        return CommandType.SET.getBytes();
      }

      @Override
      public String toString() {
        return "SET";
      }
    };
    return connection.async().dispatch(
        name, new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8).addKey("k").addValue("v"));
  }
}
