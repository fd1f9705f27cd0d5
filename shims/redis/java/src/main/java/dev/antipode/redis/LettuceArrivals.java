package dev.antipode.redis;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.netty.channel.Channel;
import java.net.InetSocketAddress;
import java.net.SocketAddress;

/**
 * Hears when a connection of Lettuce is lost, and where it arrives when it is made anew: its URI may have been changed since,
 * and its name may lead elsewhere by now. The server that it reaches then joins the store (BAR-52).
 */
final class LettuceArrivals implements RedisConnectionStateListener {
  private final StatefulRedisConnectionImpl<?, ?> plain;
  private final Binding binding;
  private final LettuceLine<?, ?> line;
  private final RedisURI place;
  private volatile SocketAddress last;

  LettuceArrivals(StatefulRedisConnectionImpl<?, ?> plain, Binding binding, LettuceLine<?, ?> line) {
    this.plain = plain;
    this.binding = binding;
    this.line = line;
    this.place = LettuceTargets.placeOf(plain);
    Channel now = line.channel();
    this.last = now == null ? null : now.remoteAddress();
  }

  @Override
  public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
    line.lost();
  }

  @Override
  public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress remote) {
    boolean isElsewhere = remote instanceof InetSocketAddress && !remote.equals(last);
    if (isElsewhere && !binding.target().moves()) { // Sentinels say it themselves
      Target reached = LettuceTargets.arrivedAt(place, plain, (InetSocketAddress) remote);
      binding.store().useServer(binding.options(), reached, reached.address());
    }
    last = remote;
  }
}
