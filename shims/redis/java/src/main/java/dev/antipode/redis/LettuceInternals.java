package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import io.lettuce.core.CommandListenerWriter;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.protocol.CommandExpiryWriter;
import io.lettuce.core.protocol.DefaultEndpoint;
import io.netty.channel.Channel;
import java.lang.reflect.Field;

/** What Lettuce keeps to itself, and a wrapped connection has to know. */
final class LettuceInternals {
  private static final Field CHANNEL = field();

  private LettuceInternals() {}

  private static Field field() {
    try {
      Field field = DefaultEndpoint.class.getDeclaredField("channel");
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new ConfigurationException(
          "AP501", "this version of Lettuce has no DefaultEndpoint.channel: Antipode was made for 7.7", error);
    }
  }

  /** What writes at last, below time-outs and listeners. */
  static RedisChannelWriter endpoint(RedisChannelWriter writer) {
    RedisChannelWriter found = writer;
    while (true) {
      if (found instanceof CommandExpiryWriter expiring) {
        found = expiring.getDelegate();
      } else if (found instanceof CommandListenerWriter listening) {
        found = listening.getDelegate();
      } else {
        return found;
      }
    }
  }

  /** The open connection below a writer, or null; for an endpoint as {@link #endpoint} gives it. */
  static Channel channel(RedisChannelWriter endpoint) {
    try {
      return (Channel) CHANNEL.get(endpoint);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // it was made accessible
    }
  }
}
