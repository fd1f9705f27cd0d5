package dev.antipode.observer;

/** A server of a store, as observers may ask it. */
public interface ObservedServer {
  /** Return its name in results and errors. */
  String address();
}
