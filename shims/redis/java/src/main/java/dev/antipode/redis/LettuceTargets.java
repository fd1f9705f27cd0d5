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
        "a " + connection.getClass().getName() + " cannot be wrapped: want what RedisClient.connect() gives. Wrap before "
            + "the connection goes into a pool; subscribe, and read from replicas, by connections of their own");
  }

  private static Target ofConnection(StatefulRedisConnectionImpl<?, ?> connection) {
    Channel channel = LettuceInternals.channel(LettuceInternals.endpoint(connection.getChannelWriter()));
    String place = channel == null ? null : channel.attr(ConnectionBuilder.REDIS_URI).get();
    if (place == null) {
      throw new ConfigurationException("where a connection of Lettuce leads to is known while it is open: wrap it then");
    }
    return ofPlace(
        RedisURI.create(place),
        connection.getConnectionState().getCredentialsProvider(), // in the text they are masked
        connection.getOptions().getSslOptions());
  }

  private static Target ofPlace(RedisURI place, RedisCredentialsProvider provider, SslOptions ssl) {
    Target.Identity credentials = timeoutMillis -> credentials(provider, timeoutMillis);
    if (place.getSentinelMasterId() != null) {
      String service = place.getSentinelMasterId();
      List<RedisURI> sentinels = List.copyOf(place.getSentinels());
      return new Target(
          "sentinel://" + service + "/primary" + Target.suffix(place.getDatabase()),
          timeoutMillis -> {
            RedisURI primary = primary(service, sentinels, ssl, timeoutMillis);
            return dial(place, primary.getHost(), primary.getPort(), ssl).connect(timeoutMillis);
          },
          credentials,
          place.getDatabase());
    }
    if (place.getSocket() != null || place.getHost() == null) {
      throw new ConfigurationException("a Unix socket cannot be wrapped: want a server with a host and a port");
    }
    return Target.fixed(
        place.isSsl(),
        place.getHost(),
        place.getPort(),
        dial(place, place.getHost(), place.getPort(), ssl),
        credentials,
        place.getDatabase());
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

  /** Where the primary is now, as the first Sentinel says that answers. */
  private static RedisURI primary(String service, List<RedisURI> sentinels, SslOptions ssl, int timeoutMillis)
      throws IOException {
    IOException last = new IOException("no Sentinel is known");
    for (RedisURI sentinel : sentinels) {
      Target target = ofPlace(sentinel, sentinel.getCredentialsProvider(), ssl);
      try (Session session = new Session(target, timeoutMillis)) {
        Object reply = session.command("SENTINEL", "get-master-addr-by-name", service);
        if (reply instanceof List<?> place && place.size() == 2) {
          return RedisURI.create(Resp.text(place.get(0)), Integer.parseInt(Resp.text(place.get(1))));
        }
        last = new IOException(target.address() + " knows no " + service);
      } catch (ServerError error) {
        last = new IOException(error);
      } catch (IOException error) {
        last = error;
      }
    }
    throw last;
  }
}
