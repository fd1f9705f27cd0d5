package dev.antipode;

/** A setting, or the way in which a call was made, cannot be right; the message names what to change. */
public class ConfigurationException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public ConfigurationException(String code, String message) {
    super(code, message);
  }

  /** An exception that something else brought about. */
  public ConfigurationException(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
