package dev.antipode.redis;

import dev.antipode.observer.KeyChange;
import dev.antipode.observer.WriteObserver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/** What one write, a command or a batch of them, tells a recorded history of the keys that it changes. */
final class WriteChanges {
  private final WriteObserver noted;
  private final Queue<List<KeyChange>> unanswered = new ArrayDeque<>(); // of each command
  private final List<KeyChange> sent = new ArrayList<>();
  private final List<KeyChange> said = new ArrayList<>();
  private boolean isUnknown;

  private WriteChanges(WriteObserver noted) {
    this.noted = noted;
    noted.changes(sent); // and what is added to it
  }

  /** Null where no history is recorded. */
  static WriteChanges of(WriteObserver noted) {
    return noted == null ? null : new WriteChanges(noted);
  }

  /** The write has this command. */
  synchronized void does(CommandWords command) {
    try {
      List<KeyChange> own = CommandEvents.changes(command);
      unanswered.add(own);
      if (own == CommandEvents.UNKNOWN) {
        unknown();
      } else {
        sent.addAll(own);
      }
    } catch (RuntimeException error) {
      untold(error);
    }
  }

  /** The next of them was answered so; an error reply has changed nothing where the server has the command for a write. */
  synchronized void says(CommandWords command, Object reply) {
    try {
      List<KeyChange> own = unanswered.remove();
      if (reply instanceof Exception) {
        if (Commands.classify(command) != Commands.Kind.WRITE) {
          unknown();
        }
      } else if (own != CommandEvents.UNKNOWN) {
        said.addAll(CommandEvents.changed(own, command, reply));
      }
    } catch (RuntimeException error) {
      untold(error);
    }
  }

  /** It has happened: the replies are what counts from now on; where one is not known, nobody knows what it did. */
  synchronized void answered() {
    if (!isUnknown) {
      noted.changes(unanswered.isEmpty() ? List.copyOf(said) : null);
    }
  }

  private void unknown() {
    isUnknown = true;
    noted.changes(null);
  }

  private void untold(RuntimeException error) {
    isUnknown = true;
    noted.untold(error);
  }
}
