package dev.antipode.fuzz;

import dev.antipode.ConfigurationException;
import dev.antipode.Keys;
import dev.antipode.internal.trust.Purpose;
import dev.antipode.internal.trust.Seal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** Seals: no text but a sealed one is valid, and what is stripped is the text or its beginning. */
public final class SealFuzzer {
  private static final Keys KEYS = Keys.of(Map.of("k", "kkkkkkkkkkkkkkkk".getBytes(StandardCharsets.US_ASCII)));
  private static final Instant NOW = Instant.EPOCH;

  private SealFuzzer() {}

  /** One text, and a file of keys. */
  public static void fuzzerTestOneInput(byte[] data) {
    String text = new String(data, StandardCharsets.UTF_8);
    Expect.that(Seal.open(text, KEYS, Purpose.VALUE, NOW).state() != Seal.State.VALID, "only what was sealed is valid");
    String stripped = Seal.strip(text);
    Expect.that(text.startsWith(stripped), "what is stripped was the end");
    String sealed = Seal.seal(text, KEYS, Purpose.VALUE, NOW, Duration.ofSeconds(1000));
    Seal.OpenedSeal opened = Seal.open(sealed, KEYS, Purpose.VALUE, NOW.plusSeconds(999));
    Expect.that(opened.state() == Seal.State.VALID, "what was sealed is valid");
    Expect.that(opened.text().equals(stripped), "what was sealed is what is opened");
    try {
      Keys.parse(text, "fuzz");
    } catch (ConfigurationException e) {
      Expect.that(!e.getMessage().isEmpty(), "a refusal has words");
    }
  }
}
