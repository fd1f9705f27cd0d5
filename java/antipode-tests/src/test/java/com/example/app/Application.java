package com.example.app;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;

/** An application's own code: where call sites point to. */
public final class Application {
  private Application() {}

  public static void append(WriteId id) {
    Antipode.append(id);
  }

  public static void appendTo(LineageScope scope, WriteId id) {
    scope.append(id);
  }

  public static String serialize() {
    return Antipode.serialize();
  }
}
