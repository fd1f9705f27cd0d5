package dev.antipode.postgresql;

import java.util.List;
import java.util.Set;

/**
 * Whether a connection's statements mean what they do on one that was just opened, as far as the shim sees it: nobody has
 * changed its session by SET (REC-23).
 */
final class SessionState {
  /** What becomes of a session by a statement, by its text. */
  enum Change {
    /** Nothing that is seen: what a function or a procedure does in it is not. */
    NONE,
    /** Settings, until its transaction ends. */
    TRANSACTION,
    /** Settings, from now on. */
    SESSION
  }

  private static final Set<String> OF_TRANSACTION = Set.of("local", "transaction", "constraints");
  private static final Memo<Change> KNOWN = new Memo<>(SessionState::judge);

  private final Known known;
  private boolean isChangedHere;

  /** {@code known} is shared by all wraps of a connection: a pool gives it to one after another. */
  SessionState(Known known) {
    this.known = known;
  }

  /** A statement was sent, whatever came of it. */
  void sent(Kind kind, String text) {
    if (text == null || kind == Kind.READ || kind == Kind.WRITE) { // which set nothing
      return;
    }
    switch (KNOWN.of(text)) {
      case SESSION -> changed();
      case TRANSACTION -> isChangedHere = true;
      case NONE -> {
        // as before
      }
    }
  }

  /** Settings were changed from now on. */
  void changed() {
    known.isChanged = true;
  }

  /** Nothing of a transaction before holds any more. */
  void transactionOver() {
    isChangedHere = false;
  }

  /** Whether it is as when it was opened. */
  boolean isAsOpened() {
    return !known.isChanged && !isChangedHere;
  }

  static Change judge(String text) {
    Change plainly = judgeBare(StatementText.without(text, false));
    if (text.indexOf('\\') < 0) {
      return plainly;
    }
    Change escaped = judgeBare(StatementText.without(text, true)); // a setting says which of them it is
    return escaped.compareTo(plainly) > 0 ? escaped : plainly;
  }

  private static Change judgeBare(String bare) {
    if (bare == null) {
      return Change.SESSION; // nobody knows
    }
    List<String> words = StatementWords.of(bare);
    Change change = words.contains("set_config") ? Change.SESSION : Change.NONE;
    for (int at = 0; at < words.size(); at++) {
      boolean isSet = words.get(at).equals("set") && (at == 0 || words.get(at - 1).equals(";"));
      if (isSet && change != Change.SESSION) {
        boolean isOfTransaction = at + 1 < words.size() && OF_TRANSACTION.contains(words.get(at + 1));
        change = isOfTransaction ? Change.TRANSACTION : Change.SESSION;
      }
    }
    return change;
  }
}
