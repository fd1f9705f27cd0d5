package dev.antipode.testing;

/** This store has no such thing; the case that asked for it belongs among the exceptions, with the reason. */
public class NotPossible extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Names the primitive that is missing. */
  public NotPossible(String primitive) {
    super("this store under test has no " + primitive + "(): give it, or list the case in exceptions()");
  }
}
