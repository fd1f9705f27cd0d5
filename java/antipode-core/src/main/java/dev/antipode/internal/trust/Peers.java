package dev.antipode.internal.trust;

import dev.antipode.ConfigurationException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/** What {@code ANTIPODE_PEERS} lists: host names, {@code .suffixes}, addresses, CIDR ranges, targets, {@code *} (TRUST-16). */
public final class Peers {
  /** Nobody. */
  public static final Peers NONE = new Peers(List.of());

  static final Pattern LABELS = Pattern.compile("[a-z0-9_-]+(?:\\.[a-z0-9_-]+)*+");

  /** A target of gRPC's with the scheme of its resolver; an address of the web is none. */
  private static final Pattern TARGET = Pattern.compile("(?!https?:)[a-z][a-z0-9+.-]*://[!-~]+");

  private final Set<String> names = new HashSet<>();
  private final List<String> suffixes = new ArrayList<>();
  private final List<Address.Network> networks = new ArrayList<>();
  private boolean everyone;

  private Peers(List<String> items) {
    items.forEach(this::add);
  }

  /**
   * The hosts that these items name.
   *
   * @throws ConfigurationException for an item that is none of these
   */
  public static Peers of(List<String> items) {
    return items.isEmpty() ? NONE : new Peers(items);
  }

  private void add(String item) {
    String text = withoutDots(Hosts.lower(item));
    if (text.equals("*")) {
      everyone = true;
    } else if (TARGET.matcher(text).matches()) {
      names.add(text);
    } else if (text.indexOf('/') >= 0 || Address.parse(text) != null) {
      Address.Network network = text.indexOf('/') >= 0 ? Address.parseNetwork(text) : only(Address.parse(text));
      if (network == null) {
        throw new ConfigurationException(
            "AP305", "ANTIPODE_PEERS: '" + item + "' is no range: want it as in 10.0.0.0/8");
      }
      networks.add(network);
    } else if (!LABELS.matcher(text.startsWith(".") ? text.substring(1) : text).matches()) {
      throw new ConfigurationException(
          "AP305", "ANTIPODE_PEERS: not a name, .suffix, address, range or *: '" + item + "'");
    } else if (text.startsWith(".")) {
      suffixes.add(text);
    } else {
      names.add(text);
    }
  }

  private static Address.Network only(Address address) {
    return new Address.Network(address, address.bits());
  }

  private static String withoutDots(String text) {
    int end = text.length();
    while (end > 0 && text.charAt(end - 1) == '.') {
      end--;
    }
    return text.substring(0, end);
  }

  /** Whether a host, in lower case and without port, is listed; a name is never looked up (TRUST-17). */
  boolean lists(String host) {
    if (everyone || names.contains(host) || suffixes.stream().anyMatch(host::endsWith)) {
      return true;
    }
    Address address = networks.isEmpty() ? null : Address.parse(host);
    return address != null && networks.stream().anyMatch(network -> network.contains(address));
  }
}
