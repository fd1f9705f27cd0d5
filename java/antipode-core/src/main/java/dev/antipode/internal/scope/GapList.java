package dev.antipode.internal.scope;

import dev.antipode.Gap;
import java.util.ArrayList;
import java.util.List;

/** Why the lineage of a scope is not complete; under the scope's lock. */
public final class GapList {
  private static final int MOST = 100;

  private final List<Gap> all = new ArrayList<>();

  /** Keep one, as far as there is room. */
  public void add(Gap gap) {
    if (all.size() < MOST) {
      all.add(gap);
    }
  }

  /** Return a copy that may be changed. */
  public List<Gap> list() {
    return new ArrayList<>(all);
  }
}
