package dev.antipode.observer;

/** A store, as observers may ask it. */
public interface ObservedStore {
  /** Return its name. */
  String name();

  /** Return what kind of store it is. */
  String kind();

  /** Return whether its writes and reads count at all: its mode is another one than off. */
  boolean records();

  /** Return whether its barriers and reads are followed and recorded, and nothing waits (REC-12). */
  boolean isDryRun();

  /** Return whether its shim tells a recorded history what reads see. */
  boolean notesReads();

  /** Return whether what it holds comes by messages, and not by reads. */
  boolean isTapped();

  /** Return whether a write's version is a position of the whole store, and not its object's. */
  boolean givesPositions();
}
