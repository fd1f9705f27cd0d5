package dev.antipode.rabbitmq;

import com.rabbitmq.client.ConnectionFactory;
import dev.antipode.ConfigurationException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Locale;

/**
 * A stream queue that is bound to the exchange, at a broker of the region that waits: where everybody can see what has
 * arrived there. As a text: the broker's URL with the queue as its fragment, {@code amqp://broker/%2F#notifications.tap}.
 */
public final class Tap {
  /** How many of the last messages a tap remembers by default. */
  public static final int REMEMBERED = 20_000;

  private final ConnectionFactory factory;
  private final String queue;
  private final int remember;

  private Tap(ConnectionFactory factory, String queue, int remember) {
    this.factory = factory.clone();
    this.queue = queue;
    this.remember = remember;
  }

  /**
   * A tap at the broker of this URL.
   *
   * @throws ConfigurationException for a URL that is no broker's
   */
  public static Tap of(String url, String queue) {
    ConnectionFactory factory = new ConnectionFactory();
    try {
      factory.setUri(new URI(url));
    } catch (URISyntaxException error) { // not its message, nor it as the cause: those have the whole text, with a password
      throw new ConfigurationException("AP502", words(url) + ": " + error.getReason());
    } catch (IllegalArgumentException error) { // the same
      throw new ConfigurationException("AP502", words(url));
    } catch (GeneralSecurityException error) {
      throw new ConfigurationException("AP502", words(url) + ": " + error, error);
    }
    return new Tap(factory, queue, REMEMBERED);
  }

  private static String words(String url) {
    return "no broker's URL: " + url.substring(url.lastIndexOf('@') + 1);
  }

  /** A tap at the broker that this factory connects to: for TLS, or credentials from elsewhere. */
  public static Tap of(ConnectionFactory factory, String queue) {
    return new Tap(factory, queue, REMEMBERED);
  }

  /**
   * The same tap, which remembers so many of the last messages; older ones cannot be waited for. A message takes about 150
   * bytes.
   */
  public Tap remember(int messages) {
    return new Tap(factory, queue, messages);
  }

  /**
   * A tap as it is given in code or by {@code ANTIPODE_STORE_<NAME>_REPLICAS}.
   *
   * @throws ConfigurationException for anything else
   */
  static Tap of(Object target) {
    if (target instanceof Tap tap) {
      return tap;
    }
    String text = String.valueOf(target);
    int at = text.indexOf('#');
    String url = at < 0 ? text : text.substring(0, at);
    String scheme = url.toLowerCase(Locale.ROOT);
    if (at < 0 || at + 1 == text.length() || !(scheme.startsWith("amqp://") || scheme.startsWith("amqps://"))) {
      throw new ConfigurationException(
          "AP502",
          "a tap is an AMQP URL with its stream queue behind #, such as amqp://broker/%2F#notifications.tap, or "
              + "Tap.of(url, queue)");
    }
    return of(url, URLDecoder.decode(text.substring(at + 1).replace("+", "%2B"), StandardCharsets.UTF_8));
  }

  /** A factory of connections to the broker, the caller's own. */
  ConnectionFactory factory() {
    return factory.clone();
  }

  /** The queue's name. */
  public String queue() {
    return queue;
  }

  int remember() {
    return remember;
  }

  /** The broker's address, without credentials. */
  String broker() {
    return address(factory.isSSL(), factory.getHost(), factory.getPort(), factory.getVirtualHost());
  }

  /** The tap's address, without credentials. */
  public String address() {
    return broker() + "#" + quoted(queue);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Tap tap && tap.address().equals(address()) && tap.remember == remember;
  }

  @Override
  public int hashCode() {
    return address().hashCode();
  }

  @Override
  public String toString() {
    return "<Tap " + address() + ">";
  }

  /** A broker's address, as every language spells it. */
  static String address(boolean tls, String host, int port, String virtualHost) {
    String bracketed = host.contains(":") ? "[" + host + "]" : host;
    return (tls ? "amqps://" : "amqp://") + bracketed + ":" + port + "/" + quoted(virtualHost);
  }

  private static String quoted(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }
}
