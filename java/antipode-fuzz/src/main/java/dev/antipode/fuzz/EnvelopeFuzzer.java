package dev.antipode.fuzz;

import dev.antipode.shim.Envelope;
import java.util.Arrays;

/** Envelopes: no value is lost, and what was closed is opened. */
public final class EnvelopeFuzzer {
  private EnvelopeFuzzer() {}

  /** Octets from a store, and of an application. */
  public static void fuzzerTestOneInput(byte[] octets) {
    Envelope.OpenedEnvelope found = Envelope.open(octets);
    Expect.that(found.text() != null || Arrays.equals(found.value(), octets), "no value is lost");
    Envelope.OpenedEnvelope opened = Envelope.open(Envelope.close(octets, "1~s..e.1"));
    Expect.that(Arrays.equals(opened.value(), octets), "what was closed is opened");
    Expect.that("1~s..e.1".equals(opened.text()), "its lineage, too");
    Expect.that(Arrays.equals(Envelope.open(Envelope.close(octets, "")).value(), octets), "without a lineage, too");
  }
}
