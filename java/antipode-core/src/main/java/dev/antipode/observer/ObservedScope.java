package dev.antipode.observer;

import dev.antipode.ScopeKind;

/** A scope, as observers may ask it: never for its lineage, for it may be called under its lock. */
public interface ObservedScope {
  /** Return what opened it. */
  ScopeKind kind();

  /** Return where it was opened: a route, or a call site (REC-7). */
  String openedBy();

  /** Return the store that its message came from; empty where none is known. */
  String queue();

  /** Return whether the request or message that it is of brought a lineage itself (REC-18). */
  boolean hasBrought();
}
