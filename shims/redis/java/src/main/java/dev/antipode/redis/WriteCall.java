package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.WriteId;
import dev.antipode.shim.Write;
import java.util.Collection;
import java.util.List;

/** A command, a pipeline or a transaction that may write: pending in the scope until it ends (SCOPE-14, SHIM-6). */
final class WriteCall {
  private static final List<String> NOTHING_HAPPENED = List.of("NOSCRIPT", "NOPERM", "READONLY", "LOADING", "EXECABORT");

  private final Binding binding;
  private final Write write;
  private boolean certain; // flagged as a write by the server: an error reply says that nothing was changed
  private boolean reached; // whether anything may have left for the server
  private boolean doubtful; // whether an attempt ended so that nobody knows what the server did
  private Object answer; // to the question behind the write: octets, or the server's error
  private final Reading reading = Reading.current(); // as it was issued: futures end on other threads
  private Lineage beside; // what rested beside values that the command answered with (a GETSET, a GETDEL)
  private final WriteChanges notes; // null where no history is recorded

  WriteCall(Binding binding, boolean certain) {
    this.binding = binding;
    this.certain = certain;
    this.write = binding.store().begin();
    this.notes = WriteChanges.of(write.noted());
  }

  /** The write is this command, or has it among others, which other scopes may have issued (SCOPE-24). */
  WriteCall with(CommandWords command) {
    write.joinScope();
    markOther(Reading.current());
    if (notes != null) {
      notes.does(command);
    }
    return this;
  }

  /** This scope sends what was queued, and has the replies in hand (SCOPE-24); null for none. */
  WriteCall executedBy(LineageScope scope) {
    write.executedBy(scope);
    return this;
  }

  /** The current scope executes what was queued. */
  void executes() {
    executedBy(LineageScope.current()).markOther(Reading.current());
  }

  private void markOther(Reading now) {
    if (now != null && now != reading) { // it asks for what only the first one collects
      now.marked(binding.store().name());
    }
  }

  /** The next of its commands was answered so, as the reply came: octets, a number, a list, null, or an error. */
  void says(CommandWords command, Object reply) {
    if (notes != null) {
      notes.says(command, reply);
    }
  }

  /** One of its commands may have written though it ended with an error. */
  void uncertain() {
    certain = false;
  }

  boolean isCertain() {
    return certain;
  }

  /** An attempt begins: whether the question may ride behind it. */
  boolean begins() {
    answer = null;
    reached = true;
    return binding.mayAsk();
  }

  /** It leaves, and another thread will hear of its outcome (SCOPE-18). */
  void inFlight() {
    write.inFlight();
  }

  /** The attempt failed so that nobody knows what the server did; the client may make another. */
  void broke() {
    doubtful = true;
  }

  /** What came as the answer to the question: octets, a ServerError, or null where the connection broke. */
  void answered(Object said) {
    answer = said;
  }

  /** What may rest beside the value. */
  Lineage lineageBeside(boolean lineageOut) {
    return write.lineageBeside(lineageOut);
  }

  /** The command has answered with values, beside which this rested; null where that is not known. */
  void sawBeside(Lineage found) {
    if (found == null) {
      return;
    }
    beside = beside == null ? found : beside.union(found);
  }

  /** The write has been answered with this reply. */
  void done(Object reply) {
    if (!write.isOpen()) {
      return;
    }
    if (notes != null) {
      notes.answered();
    }
    readBeside();
    Ordered position = answer instanceof byte[] octets ? Replication.positionOfPrimary(octets) : null;
    if (position == null || !binding.unfit().isEmpty()) {
      position = withoutPosition();
      if (position == null) {
        return;
      }
    }
    binding.marker().wrote(position);
    if (isSomething(reply)) {
      write.record(position);
    } else {
      // It may have changed nothing (a DEL of no key): where the store is now covers it all the same.
      write.recordUpperBound(position);
    }
    saw(position);
  }

  /** The client throws the server's own error to the application. */
  void refused(String words) {
    if (!write.isOpen()) {
      return;
    }
    if (doubtful) {
      write.outcomeUnknown();
    } else if (certain || NOTHING_HAPPENED.contains(ServerError.code(words))) {
      write.abandon(); // a script that may have written is not rolled back
    } else if (answer != null) {
      done(null);
    } else if (!reached) {
      write.abandon();
    } else {
      write.recordIncomplete("pending", "an error came, and no position behind it");
    }
  }

  /** The client throws something else to the application. */
  void failed() {
    if (!write.isOpen()) {
      return;
    }
    if (!doubtful && answer != null) {
      done(null);
    } else if (!doubtful && !reached) {
      write.abandon();
    } else {
      write.outcomeUnknown();
    }
  }

  /** It changed nothing, unless an attempt before did whose reply was lost. */
  void didNothing() {
    if (doubtful && write.isOpen()) {
      write.outcomeUnknown();
    }
    abandon();
  }

  /** It is known not to have happened. */
  void abandon() {
    if (write.isOpen()) {
      write.abandon();
    }
  }

  private static boolean isSomething(Object reply) {
    if (reply == null || Boolean.FALSE.equals(reply)) {
      return false;
    }
    if (reply instanceof Number number) {
      return number.doubleValue() != 0;
    }
    if (reply instanceof byte[] octets) {
      return octets.length > 0;
    }
    return !(reply instanceof Collection<?> many && many.isEmpty());
  }

  /** Records why the write has no position, if it was one; or finds it after all, by a full look (EPOCH-5). */
  private Ordered withoutPosition() {
    if (!binding.unfit().isEmpty()) {
      write.recordIncomplete("cluster", binding.unfit());
    } else if (answer instanceof ServerError error) {
      binding.denied(error.getMessage());
      write.recordIncomplete("rights", error.getMessage());
    } else if (answer == null && !binding.mayAsk()) {
      write.recordIncomplete("rights", binding.whyDenied());
    } else if (answer == null) {
      write.recordIncomplete("pending", "the connection broke before the write's position came");
    } else {
      return odd();
    }
    return null;
  }

  private Ordered odd() {
    Replication now;
    try {
      now = Replication.parse(answer);
    } catch (IllegalArgumentException error) {
      write.recordIncomplete("pending", error.getMessage());
      return null;
    }
    if (now.primary() && now.backlog()) {
      return now.position();
    }
    if (!now.primary() && now.readOnly() && !certain) {
      List<LineageScope> scopes = write.scopes();
      write.abandon(); // a script that only read, at a server that takes no writes
      saw(now.position());
      if (binding.merges()) {
        scopes.forEach(scope -> scope.append(
            WriteId.position(binding.store().name(), now.position().epoch(), now.position().counter())));
      }
    } else if (!now.primary() && now.readOnly()) {
      write.recordIncomplete("replica", "the server became a replica behind the write");
    } else if (!now.primary()) {
      write.recordIncomplete("replica", "a writable replica took it: no replication carries it");
    } else {
      String name = binding.store().name();
      binding.say(
          "AP516",
          "backlog",
          "writes to " + name + " get no position and are recorded as incomplete: " + binding.target().address()
              + " has no replica and no backlog yet. Attach a replica.");
      write.recordIncomplete("backlog", "the primary has no replication backlog, so its offset stands still");
    }
    return null;
  }

  /** The command read values, too: what these depend on. */
  private void readBeside() {
    if (beside == null) {
      return;
    }
    if (reading != null) {
      reading.saw(beside);
    }
    if (binding.merges()) {
      write.scopes().forEach(scope -> scope.transferRead(beside));
    }
  }

  private void saw(Ordered position) {
    if (reading == null) {
      return;
    }
    String name = binding.store().name();
    if (position == null) {
      reading.marked(name);
    } else {
      reading.saw(Lineage.EMPTY, WriteId.position(name, position.epoch(), position.counter()));
    }
  }
}
