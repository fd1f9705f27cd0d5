package dev.antipode.rabbitmq;

import dev.antipode.StoreOptions.OnUnfit;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.time.Duration;

/** Asks at once whether a tap can be read, and says what cures it where not (SHIM-3). */
final class TapProbe {
  private static final Duration PATIENCE = Duration.ofSeconds(2);

  private TapProbe() {}

  /**
   * Asks whether a tap can be read; one whose broker does not answer now is asked again when it is waited for.
   *
   * @throws UnfitStoreException where it cannot, and that is to be an error
   */
  static void check(String store, Tap tap, OnUnfit onUnfit) {
    try {
      probe(tap);
    } catch (TapRefusedException error) {
      String[] cure = cureOf(tap, error.getMessage());
      String words = "the tap of %s cannot be read: %s at %s.\n  %s".formatted(store, cure[0], tap.address(), cure[1]);
      if (onUnfit == OnUnfit.RAISE) {
        throw new UnfitStoreException(words + " Until then onUnfit(UNPROVEN) lets the service start.", error);
      }
      Logs.warn("AP208", "unfit " + tap.address(), words);
    } catch (IOException error) {
      Logs.warn(
          "AP507",
          "unfit " + tap.address(),
          "the tap of %s at %s does not answer now: %s".formatted(store, tap.address(), error.getMessage()));
    }
  }

  private static void probe(Tap tap) throws IOException, TapRefusedException {
    TapReader reader = new TapReader(tap, new TapMemory(1), () -> {}, PATIENCE);
    try {
      reader.start(PATIENCE);
    } finally {
      reader.close();
    }
  }

  /** What a broker's refusal means, and what to do about it. */
  private static String[] cureOf(Tap tap, String words) {
    String user = tap.factory().getUsername();
    String host = tap.factory().getVirtualHost();
    String grant = "rabbitmqctl set_permissions -p %s %s '^$' '^$' '^%s$'".formatted(host, user, tap.queue());
    if (words.startsWith("404")) {
      return new String[] {
        "there is no queue " + tap.queue(),
        "Declare it once: AntipodeRabbit.declareTap(channel, EXCHANGE, \"" + tap.queue() + "\")."
      };
    }
    if (words.startsWith("406") && words.contains(ChannelConsumer.STREAM_OFFSET)) {
      return new String[] {
        tap.queue() + " is no stream queue", "Declare one beside it: AntipodeRabbit.declareTap(channel, EXCHANGE)."
      };
    }
    if (words.startsWith("403")) {
      return new String[] {user + " may not read " + tap.queue(), "Grant it: " + grant};
    }
    if (words.contains("vhost") || words.contains("virtual host")) {
      return new String[] {user + " may not use the virtual host " + host, "Create it, and grant: " + grant};
    }
    if (words.contains("authentication") || words.contains("ACCESS_REFUSED")) {
      return new String[] {user + " may not log in", "Give the right user and password in the URL."};
    }
    return new String[] {words, "See the broker's log."};
  }
}
