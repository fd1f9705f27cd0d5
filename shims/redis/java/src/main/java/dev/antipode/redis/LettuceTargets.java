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
import io.lettuce.core.resource.ClientResources;
import io.netty.channel.Channel;
import io.netty.handler.ssl.JdkSslContext;
import io.netty.handler.ssl.SslContext;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.net.ssl.SSLSocketFactory;

/** Where Lettuce connects to. */
final class LettuceTargets {
  private static final List<String> OWN = List.of("io.lettuce.", "io.netty.");

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

  /** Resolvers of the application may lead elsewhere than the URI says: then it is the server that was reached (BAR-52). */
  private static Target ofConnection(StatefulRedisConnectionImpl<?, ?> connection) {
    RedisURI place = placeOf(connection);
    Target said = ofPlace(
        place,
        connection.getConnectionState().getCredentialsProvider(), // in the text they are masked
        connection.getOptions().getSslOptions());
    InetSocketAddress reached = reachedBy(connection);
    return said.moves() || said.mayLeadTo(reached)
        ? said
        : arrivedAt(place, connection, reached);
  }

  /** Return the URI that an open connection was made with; credentials are masked in it. */
  static RedisURI placeOf(StatefulRedisConnectionImpl<?, ?> connection) {
    return RedisURI.create(opened(channelOf(connection).attr(ConnectionBuilder.REDIS_URI).get()));
  }

  /** Return the place at which an open connection has arrived. */
  static InetSocketAddress reachedBy(StatefulRedisConnectionImpl<?, ?> connection) {
    if (opened(channelOf(connection).remoteAddress()) instanceof InetSocketAddress reached && !reached.isUnresolved()) {
      return reached;
    }
    throw unixSocket();
  }

  /** Return whether Lettuce's own code says where a connection leads when it is made anew, as its URI and the name service do. */
  static boolean leadsPlainly(StatefulRedisConnectionImpl<?, ?> connection) {
    ClientResources resources = connection.getResources();
    return Stream.of(resources.socketAddressResolver(), resources.addressResolverGroup())
        .allMatch(each -> each == null || OWN.stream().anyMatch(each.getClass().getName()::startsWith));
  }

  private static Channel channelOf(StatefulRedisConnectionImpl<?, ?> connection) {
    return opened(LettuceInternals.channel(LettuceInternals.endpoint(connection.getChannelWriter())));
  }

  private static <T> T opened(T known) {
    if (known == null) {
      throw new ConfigurationException(
          "AP501", "where a connection of Lettuce leads to is known while it is open: wrap it then");
    }
    return known;
  }

  private static ConfigurationException unixSocket() {
    return new ConfigurationException(
        "AP501", "a Unix socket cannot be wrapped: want a server with a host and a port");
  }

  /** Return the target at which a connection has really arrived, which was made with a URI like this one. */
  static Target arrivedAt(RedisURI like, StatefulRedisConnectionImpl<?, ?> connection, InetSocketAddress remote) {
    RedisCredentialsProvider provider = connection.getConnectionState().getCredentialsProvider();
    String host = remote.getAddress().getHostAddress();
    Target.Dial plain = Target.plain(host, remote.getPort());
    return Target.fixed(
        like.isSsl(),
        host,
        remote.getPort(),
        dial(like, plain, like.getHost(), like.getPort(), connection.getOptions().getSslOptions()),
        timeoutMillis -> credentials(provider, timeoutMillis),
        like.getDatabase());
  }

  private static Target ofPlace(RedisURI place, RedisCredentialsProvider provider, SslOptions ssl) {
    Target.Identity credentials = timeoutMillis -> credentials(provider, timeoutMillis);
    if (place.getSentinelMasterId() != null) {
      Sentinels sentinels = new Sentinels(
          place.getSentinelMasterId(),
          place.getSentinels().stream().map(each -> ofPlace(each, each.getCredentialsProvider(), ssl)).toList());
      Target.ServerNaming naming = timeoutMillis -> {
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
      throw unixSocket();
    }
    return fixed(place, place.getHost(), place.getPort(), credentials, ssl);
  }

  private static Target fixed(RedisURI like, String host, int port, Target.Identity credentials, SslOptions ssl) {
    Target.Dial dial = dial(like, Target.plain(host, port), host, port, ssl);
    return Target.fixed(like.isSsl(), host, port, dial, credentials, like.getDatabase());
  }

  /** A way to a place whose certificate has to name this host. */
  private static Target.Dial dial(RedisURI like, Target.Dial plain, String host, int port, SslOptions ssl) {
    boolean verifies = like.getVerifyMode() == SslVerifyMode.FULL;
    return like.isSsl()
        ? timeoutMillis -> Target.tls(plain, host, port, factory(ssl), verifies).connect(timeoutMillis)
        : plain;
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
