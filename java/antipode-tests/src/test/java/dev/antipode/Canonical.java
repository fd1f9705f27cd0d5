package dev.antipode;

import dev.antipode.internal.model.Section;
import dev.antipode.internal.model.WireForm;
import dev.antipode.internal.model.WireForm.Parts;
import java.util.Map;
import java.util.stream.Collectors;

/** What texts are compared as. */
public final class Canonical {
  private Canonical() {}

  /** The text of a lineage with every section opened; also past the limits of what may be written. */
  public static String canonical(Lineage lineage) {
    Parts parts = lineage.parts();
    return WireForm.join(new Parts(
        parts.sections().entrySet().stream()
            .collect(Collectors.toMap(Map.Entry::getKey, each -> Section.open(each.getValue()).text())),
        parts.incomplete(),
        parts.extensions()));
  }
}
