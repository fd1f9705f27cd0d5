package dev.antipode.internal.scope;

import dev.antipode.LineageScope;
import java.util.function.ObjIntConsumer;

/** What {@link LineageScope} gives to work that carries it, and keeps from applications. */
public final class ScopeAccess {
  private static volatile ObjIntConsumer<LineageScope> hold;

  private ScopeAccess() {}

  /** Called by {@link LineageScope} once, before there is any scope. */
  public static void give(ObjIntConsumer<LineageScope> holding) {
    hold = holding;
  }

  /** Keep a detached scope open for work that carries it. */
  static void hold(LineageScope scope) {
    hold.accept(scope, 1);
  }

  /** The work that carried the scope has ended. */
  static void release(LineageScope scope) {
    hold.accept(scope, -1);
  }
}
