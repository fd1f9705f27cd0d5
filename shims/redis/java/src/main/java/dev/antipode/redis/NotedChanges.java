package dev.antipode.redis;

import dev.antipode.observer.Changed;
import dev.antipode.observer.WriteObserver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/** What one write, a command or a batch of them, tells a recorded history of the keys that it changes. */
final class NotedChanges {
  private final WriteObserver noted;
  private final Queue<List<Changed>> unanswered = new ArrayDeque<>(); // of each command
  private final List<Changed> sent = new ArrayList<>();
  private final List<Changed> said = new ArrayList<>();
  private boolean isUnknown;

  private NotedChanges(WriteObserver noted) {
    this.noted = noted;
    noted.changes(sent); // and what is added to it
  }

  /** Null where no history is recorded. */
  static NotedChanges of(WriteObserver noted) {
    return noted == null ? null : new NotedChanges(noted);
  }

  /** The write has this command. */
  synchronized void does(Words command) {
    try {
      List<Changed> own = Noting.changes(command);
      unanswered.add(own);
      if (own == Noting.UNKNOWN) {
        unknown();
      } else {
        sent.addAll(own);
      }
    } catch (RuntimeException error) {
      untold(error);
    }
  }

  /** The next of them was answered so; an error reply has changed nothing where the server has the command for a write. */
  synchronized void says(Words command, Object reply) {
    try {
      List<Changed> own = unanswered.remove();
      if (reply instanceof Exception) {
        if (Commands.classify(command) != Commands.Kind.WRITE) {
          unknown();
        }
      } else if (own != Noting.UNKNOWN) {
        said.addAll(Noting.changed(own, command, reply));
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
