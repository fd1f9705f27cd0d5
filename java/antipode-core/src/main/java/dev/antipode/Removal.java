package dev.antipode;

import java.util.List;

/**
 * What {@code remove} did (LIN-21).
 *
 * @param lineage what it took out
 * @param stillCovered which of the named writes the scope still covers, by a position or a greater counter
 */
public record Removal(Lineage lineage, List<WriteId> stillCovered) {
  /** Nothing was there to be removed. */
  public static final Removal NOTHING = new Removal(Lineage.EMPTY, List.of());
}
