package dev.antipode;

import dev.antipode.internal.model.CodedText;

/**
 * The root of everything that Antipode throws itself. Its message ends its first line with its code, as {@code [AP104]}
 * (OBS-14); {@code antipode explain CODE} says more.
 *
 * <p>The wire never throws: of these, only {@code deserialize} throws {@link MalformedLineageException}, and middlewares
 * throw none. An error of a datastore's own client stays that client's exception in a wrapped call; in a barrier it
 * becomes the verdict {@code unproven}, with the client's words as the reason.
 */
public class AntipodeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String code;

  /** An exception that says what happened, why, and what to do; its code is one of spec/data/messages.json. */
  public AntipodeException(String code, String message) {
    this(code, message, null);
  }

  /** An exception that something else brought about. */
  public AntipodeException(String code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
  }

  /** The message's code, {@code AP} and three digits: the same in every language (OBS-14). */
  public String code() {
    return code;
  }

  /** The message without its code. */
  public String words() {
    return super.getMessage();
  }

  @Override
  public String getMessage() {
    return CodedText.of(words(), code);
  }
}
