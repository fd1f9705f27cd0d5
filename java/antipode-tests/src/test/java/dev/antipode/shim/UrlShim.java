package dev.antipode.shim;

import dev.antipode.WriteId;
import java.util.Collections;
import java.util.List;
import java.util.Set;

/** A shim that {@link java.util.ServiceLoader} finds: its servers have everything. */
public class UrlShim extends Shim {
  @Override
  public String kind() {
    return "url-test";
  }

  @Override
  public Capabilities capabilities() {
    return Capabilities.objects();
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) {
    return Collections.nCopies(ids.size(), Visibility.VISIBLE);
  }

  @Override
  public Set<String> schemes() {
    return Set.of("url-test");
  }
}
