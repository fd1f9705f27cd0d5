package dev.antipode.lab;

/** A command of the lab failed, or did not end. */
public class LabException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  LabException(String command, String output) {
    super("antipode-lab " + command + ": " + output.strip());
  }
}
