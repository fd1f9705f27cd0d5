package dev.antipode.redis;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StatefulRedisConnectionImpl;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Hears when a connection of Lettuce is lost, and where it arrives, at first and when it is made anew: its URI may have been
 * changed since, and its name may lead elsewhere. The server that it reaches joins the store (BAR-52).
 */
final class LettuceArrivals implements RedisConnectionStateListener {
  private final StatefulRedisConnectionImpl<?, ?> plain;
  private final Binding binding;
  private final LettuceLine<?, ?> line;
  private final RedisURI place;
  private volatile SocketAddress last;
  private volatile Target reached; // at the last place; null where it is the wrap's own server
  private volatile AtomicBoolean isLost = new AtomicBoolean();

  LettuceArrivals(StatefulRedisConnectionImpl<?, ?> plain, Binding binding, LettuceLine<?, ?> line) {
    this.plain = plain;
    this.binding = binding;
    this.line = line;
    this.place = LettuceTargets.placeOf(plain);
    InetSocketAddress first = LettuceTargets.reachedBy(plain);
    this.last = first;
    if (!binding.target().moves() && !binding.target().leadsOnlyTo(first)) {
      joins(first);
    }
  }

  @Override
  public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
    isLost.set(true);
    line.lost();
  }

  @Override
  public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress remote) {
    boolean isElsewhere = remote instanceof InetSocketAddress && !remote.equals(last);
    if (isElsewhere && !binding.target().moves()) { // Sentinels say it themselves
      joins((InetSocketAddress) remote);
    } else if (reached != null) { // it may have left while the connection was lost
      joins(reached);
    }
    last = remote;
  }

  private void joins(InetSocketAddress remote) {
    reached = LettuceTargets.arrivedAt(place, plain, remote);
    joins(reached);
  }

  private void joins(Target server) {
    AtomicBoolean isOver = new AtomicBoolean();
    isLost = isOver;
    if (LettuceTargets.leadsPlainly(plain)) {
      binding.store().reach(binding.options(), server, plain, connection -> !isOver.get());
    } else { // the application's own code may lead there again (BAR-62)
      binding.store().useServer(binding.options(), server, server.address());
    }
  }
}
