package dev.antipode.vectors;

import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import java.util.List;

/** A store that vectors write to, and that nobody asks. */
class VectorShim extends Shim {
  /** One whose writes are positions. */
  static final class Positions extends VectorShim {
    @Override
    public Capabilities capabilities() {
      return Capabilities.positions();
    }
  }

  @Override
  public String kind() {
    return "vectors";
  }

  @Override
  public Capabilities capabilities() {
    return Capabilities.objects();
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) {
    throw new AssertionError("nobody asks this store");
  }

  @Override
  public String address(Object target) {
    return target.toString();
  }
}
