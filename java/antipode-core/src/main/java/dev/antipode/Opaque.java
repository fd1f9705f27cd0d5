package dev.antipode;

/**
 * A version without order: equal to another one or not (LIN-2).
 *
 * @param mark the name of the version, not empty
 */
public record Opaque(String mark) implements Version {
  /**
   * Checks the mark.
   *
   * @throws IllegalArgumentException for an empty mark
   */
  public Opaque {
    if (mark.isEmpty()) {
      throw new IllegalArgumentException("an opaque version needs a mark");
    }
  }

  @Override
  public String toString() {
    return mark;
  }
}
