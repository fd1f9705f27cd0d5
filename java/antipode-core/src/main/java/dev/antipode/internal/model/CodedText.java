package dev.antipode.internal.model;

/** A message with its code, as exceptions and the log have it (OBS-14). */
public final class CodedText {
  private CodedText() {}

  /** A message with its code behind its first line; nothing is added where it has none. */
  public static String of(String message, String code) {
    if (code.isEmpty() || message == null) {
      return message;
    }
    int end = message.indexOf('\n');
    int first = end < 0 ? message.length() : end;
    return message.substring(0, first) + " [" + code + "]" + message.substring(first);
  }
}
