package dev.antipode.fuzz;

import dev.antipode.Lineage;
import dev.antipode.MalformedLineageException;
import java.nio.charset.StandardCharsets;

/** The strict reader and the algebra: what is accepted means one lineage, and is written so that it is read again. */
public final class LineageFuzzer {
  private LineageFuzzer() {}

  /** Two texts, so that joining is tried: they stand before and behind the first line feed. */
  public static void fuzzerTestOneInput(byte[] data) {
    String input = new String(data, StandardCharsets.UTF_8);
    int cut = input.indexOf('\n');
    Lineage a = read(cut < 0 ? input : input.substring(0, cut));
    Lineage b = read(cut < 0 ? "1" : input.substring(cut + 1));
    if (a == null) {
      return;
    }
    String text = a.serialize();
    Expect.that(Lineage.deserialize(text).serialize().equals(text), "a text is read and written again");
    Expect.that(Lineage.deserialize(text).equals(a), "a text means its lineage");
    Expect.that(Lineage.of(a.ids()).equals(a), "a lineage is its identifiers");
    Expect.that(a.fit(200).serialize().length() <= 200, "what is cut fits");
    if (b == null) {
      return;
    }
    Lineage both = a.union(b);
    Expect.that(both.equals(b.union(a)), "joining commutes");
    Expect.that(a.isCoveredBy(both), "what is joined covers its parts");
    Expect.that(both.without(b).isCoveredBy(a), "what is taken out is out");
    Expect.that(both.addedTo(a).union(a).equals(both), "what was added is enough");
  }

  private static Lineage read(String text) {
    try {
      return Lineage.deserialize(text);
    } catch (MalformedLineageException e) {
      return null;
    }
  }
}
