package dev.antipode;

import java.util.List;

/**
 * What {@code remove} did (LIN-21).
 *
 * @param lineage what it took out
 * @param stillCovered which of the named writes the scope still covers, by a position or a greater counter
 */
public record Removed(Lineage lineage, List<WriteId> stillCovered) {
  /** Nothing was there to be removed. */
  public static final Removed NOTHING = new Removed(Lineage.EMPTY, List.of());
}
