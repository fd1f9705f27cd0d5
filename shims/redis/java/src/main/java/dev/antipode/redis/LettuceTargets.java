package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import io.lettuce.core.ConnectionBuilder;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.SslVerifyMode;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import io.netty.channel.Channel;
import io.netty.handler.ssl.JdkSslContext;
import io.netty.handler.ssl.SslContext;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import javax.net.ssl.SSLSocketFactory;

/** Where Lettuce connects to. */
final class LettuceTargets {
  private LettuceTargets() {}

  /** The target of a RedisURI, or of a connection that is open. */
  static Target of(Object what) {
    if (what instanceof RedisURI place) {
      return ofPlace(place, place.getCredentialsProvider(), SslOptions.create());
    }
    if (what instanceof RecordingConnection<?, ?> wrapped) {
      return ofConnection(wrapped.plain());
    }
    return ofConnection(checked((StatefulRedisConnection<?, ?>) what));
  }

  /**
   * A connection to one server.
   *
   * @throws ConfigurationException for one of another kind
   */
  static <K, V> StatefulRedisConnectionImpl<K, V> checked(StatefulRedisConnection<K, V> connection) {
    // Those of publish and subscribe, and of a primary with replicas, are subclasses.
    if (connection instanceof StatefulRedisConnectionImpl<K, V> one
        && connection.getClass() == StatefulRedisConnectionImpl.class) {
      return one;
    }
    throw new ConfigurationException(
        "AP501",
        "a " + connection.getClass().getName() + " cannot be wrapped: want what RedisClient.connect() gives. Wrap before "
            + "the connection goes into a pool; subscribe, and read from replicas, by connections of their own");
  }

  private static Target ofConnection(StatefulRedisConnectionImpl<?, ?> connection) {
    return ofPlace(
        placeOf(connection),
        connection.getConnectionState().getCredentialsProvider(), // in the text they are masked
        connection.getOptions().getSslOptions());
  }

  /** Return the URI that an open connection was made with; credentials are masked in it. */
  static RedisURI placeOf(StatefulRedisConnectionImpl<?, ?> connection) {
    Channel channel = LettuceInternals.channel(LettuceInternals.endpoint(connection.getChannelWriter()));
    String place = channel == null ? null : channel.attr(ConnectionBuilder.REDIS_URI).get();
    if (place == null) {
      throw new ConfigurationException(
          "AP501", "where a connection of Lettuce leads to is known while it is open: wrap it then");
    }
    return RedisURI.create(place);
  }

  /** Return the target at which a connection has really arrived, which was made with a URI like this one. */
  static Target arrivedAt(RedisURI like, StatefulRedisConnectionImpl<?, ?> connection, InetSocketAddress remote) {
    RedisCredentialsProvider provider = connection.getConnectionState().getCredentialsProvider();
    return fixed(
        like,
        remote.getAddress().getHostAddress(),
        remote.getPort(),
        timeoutMillis -> credentials(provider, timeoutMillis),
        connection.getOptions().getSslOptions());
  }

  private static Target ofPlace(RedisURI place, RedisCredentialsProvider provider, SslOptions ssl) {
    Target.Identity credentials = timeoutMillis -> credentials(provider, timeoutMillis);
    if (place.getSentinelMasterId() != null) {
      Sentinels sentinels = new Sentinels(
          place.getSentinelMasterId(),
          place.getSentinels().stream().map(each -> ofPlace(each, each.getCredentialsProvider(), ssl)).toList());
      Target.Naming naming = timeoutMillis -> {
        Sentinels.Place primary = sentinels.primary(timeoutMillis);
        return List.of(fixed(place, primary.host(), primary.port(), credentials, ssl));
      };
      return new Target(
          sentinels.address(place.getDatabase()),
          timeoutMillis -> naming.servers(timeoutMillis).get(0).connect(timeoutMillis),
          credentials,
          place.getDatabase(),
          naming);
    }
    if (place.getSocket() != null || place.getHost() == null) {
      throw new ConfigurationException(
          "AP501", "a Unix socket cannot be wrapped: want a server with a host and a port");
    }
    return fixed(place, place.getHost(), place.getPort(), credentials, ssl);
  }

  private static Target fixed(RedisURI like, String host, int port, Target.Identity credentials, SslOptions ssl) {
    return Target.fixed(like.isSsl(), host, port, dial(like, host, port, ssl), credentials, like.getDatabase());
  }

  private static Target.Dial dial(RedisURI like, String host, int port, SslOptions ssl) {
    return like.isSsl()
        ? timeoutMillis -> encrypted(like, host, port, ssl, timeoutMillis)
        : Target.plain(host, port);
  }

  private static Socket encrypted(RedisURI like, String host, int port, SslOptions ssl, int timeoutMillis)
      throws IOException {
    return Target.tls(host, port, factory(ssl), like.getVerifyMode() == SslVerifyMode.FULL).connect(timeoutMillis);
  }

  private static SSLSocketFactory factory(SslOptions ssl) throws IOException {
    try {
      SslContext made = ssl.createSslContextBuilder().build();
      if (made instanceof JdkSslContext context) {
        return context.context().getSocketFactory();
      }
      throw new IOException("only the TLS of the JDK is supported, not " + made.getClass().getSimpleName());
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }

  private static Credentials credentials(RedisCredentialsProvider provider, int timeoutMillis) {
    RedisCredentials found =
        provider == null ? null : provider.resolveCredentials().block(Duration.ofMillis(timeoutMillis));
    return found == null || !found.hasPassword()
        ? null
        : new Credentials(found.hasUsername() ? found.getUsername() : null, new String(found.getPassword()));
  }
}
