package app;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import java.util.function.Supplier;

/** Code of an application, outside our packages: its frames are call sites. */
public final class Application {
  private static String site = "";

  private Application() {}

  /** Calls a barrier, and notes where. */
  public static BarrierResult barrier(BarrierOptions options) {
    site = "app/Application.java:" + (new Throwable().getStackTrace()[0].getLineNumber() + 1);
    return Antipode.barrier(options);
  }

  /** Calls something that asks for its call site, and notes where. */
  public static String site(Supplier<String> asking) {
    site = "app/Application.java:" + (new Throwable().getStackTrace()[0].getLineNumber() + 1);
    return asking.get();
  }

  /** Where the last call was made. */
  public static String site() {
    return site;
  }
}
