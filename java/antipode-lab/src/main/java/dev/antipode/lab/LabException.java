package dev.antipode.lab;

import java.util.List;

/** A command of the lab failed, or did not end. */
public class LabException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  LabException(List<String> words, String output) {
    super("antipode-lab " + String.join(" ", words) + ": " + output.strip());
  }
}
