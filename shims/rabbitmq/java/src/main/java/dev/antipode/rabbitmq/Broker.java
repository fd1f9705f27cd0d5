package dev.antipode.rabbitmq;

import com.rabbitmq.client.Connection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A broker that this process consumes from or publishes to, without a tap.
 *
 * @param address without credentials
 */
record Broker(String address) {
  /** How the client spells a connection; its API has no word for the virtual host. */
  private static final Pattern SPELLED = Pattern.compile("amqps?://.*@[^@/]*:\\d+(/.*)", Pattern.DOTALL);

  private static final int TLS_PORT = 5671;

  /** The broker of a connection; one whose virtual host cannot be told is like no other. */
  static Broker of(Connection connection) {
    String resolved = String.valueOf(connection.getAddress()); // name/address, without asking for the name
    int slash = resolved.indexOf('/');
    String host = slash > 0 ? resolved.substring(0, slash) : resolved.substring(slash + 1);
    Matcher spelled = SPELLED.matcher(connection.toString());
    String virtualHost = spelled.matches()
        ? (spelled.group(1).equals("/") ? "/" : spelled.group(1).substring(1))
        : "unknown-" + Integer.toHexString(System.identityHashCode(connection));
    int port = connection.getPort();
    return new Broker(Tap.address(port == TLS_PORT, host, port, virtualHost));
  }

  /** What tells a broker from another one, however it is reached. */
  static String place(String address) {
    return address.substring(address.indexOf("://") + 3);
  }
}
