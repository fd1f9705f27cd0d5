package shop;

import dev.antipode.Antipode;
import dev.antipode.memory.MemoryClient;

/** An application's own code, outside our packages: where findings say that they happened (REC-11). */
public final class Followers {
  private Followers() {}

  /** Reads without a barrier. */
  public static String read(MemoryClient posts, String key) {
    return posts.get(key);
  }

  /** Where a barrier could stand. */
  public static void barrier() {
    Antipode.barrier();
  }
}
