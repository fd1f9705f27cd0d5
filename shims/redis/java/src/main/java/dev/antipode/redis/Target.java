package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/**
 * How to reach a Redis server beside the application's own client: with its address, user and TLS.
 *
 * @param address its name for people and for telling servers apart: no credentials
 * @param dial makes a new socket of our own; with Sentinels it leads to another server later
 * @param identity asked at each connecting
 * @param database its number
 * @param naming asks whom it leads to now; null where that is one server
 * @param place the name and port of one server, not resolved; null where they are not known
 */
record Target(
    String address, Dial dial, Identity identity, int database, ServerNaming naming, InetSocketAddress place) {
  static final int DEFAULT_PORT = 6379;

  /** One server, wherever it is. */
  Target(String address, Dial dial, Identity identity, int database) {
    this(address, dial, identity, database, null, null);
  }

  /** The servers of a role. */
  Target(String address, Dial dial, Identity identity, int database, ServerNaming naming) {
    this(address, dial, identity, database, naming, null);
  }

  /** Names the servers of a role: Sentinels do. */
  interface ServerNaming {
    /** The servers that have it now; throws where nobody says so within the time. */
    List<Target> servers(int timeoutMillis) throws IOException;
  }

  /** Makes a socket. */
  interface Dial {
    /** Connects; throws where the server cannot be reached within the time. */
    Socket connect(int timeoutMillis) throws IOException;
  }

  /** Who our own connections are. The application's own code may be behind it. */
  interface Identity {
    /** The credentials, or null where none are needed; throws where there are none within the time. */
    Credentials credentials(int timeoutMillis) throws IOException;
  }

  /** Who a new connection is; throws where nobody says so within the time. */
  Credentials credentials(int timeoutMillis) throws IOException {
    try {
      return identity.credentials(timeoutMillis);
    } catch (RuntimeException error) {
      throw new IOException("no credentials for " + address + ": " + error, error);
    }
  }

  /** A new socket of our own; throws where the server cannot be reached within the time. */
  Socket connect(int timeoutMillis) throws IOException {
    return dial.connect(timeoutMillis);
  }

  /** Whether it leads to whichever server has a role, so that each connection may reach another one. */
  boolean moves() {
    return naming != null;
  }

  /** Return whether it leads to this one server, which a connection has reached, and to no other (BAR-52). */
  boolean leadsOnlyTo(InetSocketAddress reached) {
    return mayLeadTo(reached) && named(place.getHostString()).size() == 1;
  }

  /** Return whether it may lead to this server, which a connection has reached. */
  boolean mayLeadTo(InetSocketAddress reached) {
    return place != null
        && reached.getPort() == place.getPort()
        && named(place.getHostString()).contains(reached.getAddress());
  }

  private static List<InetAddress> named(String host) {
    try {
      return List.of(InetAddress.getAllByName(host));
    } catch (UnknownHostException | SecurityException error) { // the client has a resolver of its own
      return List.of();
    }
  }

  /**
   * The target behind a URL, or behind a client of Jedis or Lettuce.
   *
   * @throws ConfigurationException for what is neither
   */
  static Target of(Object what) {
    if (what instanceof Target target) {
      return target;
    }
    if (what instanceof String url) {
      return ofUrl(url);
    }
    if (what instanceof URI url) {
      return ofUrl(url.toString());
    }
    // By name: a user of the one client does not have the classes of the other.
    if (isA(what, "redis.clients.jedis.UnifiedJedis")) {
      return JedisTargets.of(what);
    }
    if (isA(what, "io.lettuce.core.RedisURI") || isA(what, "io.lettuce.core.api.StatefulRedisConnection")) {
      return LettuceTargets.of(what);
    }
    throw new ConfigurationException(
        "AP501",
        "no Redis server: want a URL, a UnifiedJedis, or a RedisURI or StatefulRedisConnection of Lettuce, not " + what);
  }

  private static boolean isA(Object what, String name) {
    Deque<Class<?>> kinds = new ArrayDeque<>();
    kinds.add(what.getClass());
    while (!kinds.isEmpty()) {
      Class<?> kind = kinds.pop();
      if (kind.getName().equals(name)) {
        return true;
      }
      kinds.addAll(Arrays.asList(kind.getInterfaces()));
      if (kind.getSuperclass() != null) {
        kinds.add(kind.getSuperclass());
      }
    }
    return false;
  }

  private static Target ofUrl(String url) {
    try {
      URI parsed = new URI(url);
      boolean isTls = "rediss".equals(parsed.getScheme());
      if ((isTls || "redis".equals(parsed.getScheme())) && parsed.getHost() != null) {
        int port = parsed.getPort() < 0 ? DEFAULT_PORT : parsed.getPort();
        String host = parsed.getHost().replaceAll("[\\[\\]]", "");
        Dial dial = isTls
            ? tls(host, port, (SSLSocketFactory) SSLSocketFactory.getDefault(), true)
            : plain(host, port);
        Credentials credentials = credentials(parsed.getRawUserInfo());
        return fixed(isTls, host, port, dial, timeoutMillis -> credentials, database(parsed.getPath()));
      }
    } catch (URISyntaxException error) { // not its message, nor it as the cause: those have the whole text, with a password
      throw new ConfigurationException(
          "AP502", "no server's URL: " + withoutCredentials(url) + ": " + error.getReason());
    } catch (IllegalArgumentException error) { // the same
      throw new ConfigurationException("AP502", "no server's URL: " + withoutCredentials(url));
    }
    throw new ConfigurationException(
        "AP502", "no server's URL: " + withoutCredentials(url) + ": want redis://host:port");
  }

  private static String withoutCredentials(String url) {
    return url.substring(url.lastIndexOf('@') + 1);
  }

  private static Credentials credentials(String userInfo) {
    if (userInfo == null) {
      return null;
    }
    int colon = userInfo.indexOf(':');
    String user = decoded(colon < 0 ? "" : userInfo.substring(0, colon));
    return new Credentials(user.isEmpty() ? null : user, decoded(userInfo.substring(colon + 1)));
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  private static int database(String path) {
    return path == null || path.length() < 2 ? 0 : Integer.parseInt(path.substring(1));
  }

  /** A server that does not move. */
  static Target fixed(
      boolean isTls, String host, int port, Dial dial, Identity identity, int database) {
    String named = host.contains(":") ? "[" + host + "]" : host;
    String address = (isTls ? "rediss" : "redis") + "://" + named + ":" + port + suffix(database);
    return new Target(address, dial, identity, database, null, InetSocketAddress.createUnresolved(host, port));
  }

  /** A database in an address. */
  static String suffix(int database) {
    return database == 0 ? "" : "/" + database;
  }

  /** An open connection to a place. */
  static Dial plain(String host, int port) {
    return timeoutMillis -> {
      Socket socket = new Socket();
      boolean isReady = false;
      try {
        socket.setTcpNoDelay(true);
        socket.connect(new InetSocketAddress(host, port), timeoutMillis);
        socket.setSoTimeout(timeoutMillis);
        isReady = true;
        return socket;
      } finally {
        if (!isReady) {
          socket.close();
        }
      }
    };
  }

  /**
   * An encrypted connection to a place.
   *
   * @param verifies whether the certificate has to name the host
   */
  static Dial tls(String host, int port, SSLSocketFactory factory, boolean verifies) {
    return tls(plain(host, port), host, port, factory, verifies);
  }

  /** The same, where the place is reached otherwise than by its name. */
  static Dial tls(Dial place, String host, int port, SSLSocketFactory factory, boolean verifies) {
    return timeoutMillis -> {
      Socket open = place.connect(timeoutMillis);
      boolean isReady = false;
      try {
        SSLSocket socket = (SSLSocket) factory.createSocket(open, host, port, true);
        if (verifies) {
          SSLParameters parameters = socket.getSSLParameters();
          parameters.setEndpointIdentificationAlgorithm("HTTPS");
          socket.setSSLParameters(parameters);
        }
        socket.startHandshake();
        isReady = true;
        return socket;
      } finally {
        if (!isReady) {
          open.close();
        }
      }
    };
  }

  @Override
  public String toString() {
    return address;
  }
}
