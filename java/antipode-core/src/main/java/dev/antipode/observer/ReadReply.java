package dev.antipode.observer;

import dev.antipode.shim.ReadValue;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;

/**
 * What one read, or one batch of reads, returned.
 *
 * @param server which server answered
 * @param values what was found
 * @param shown what it was to the application, to be compared with what {@code again} returns; null where that is not sent
 * @param again sends the same read once more, on a connection of the shim's own; called by a thread of Antipode's, later; null
 *     where that is not known to have no side effects, or to return the same of the same data
 */
public record ReadReply(ObservedServer server, List<ReadValue> values, Supplier<?> shown, Callable<?> again) {
  /** A reply to a read that is not sent again. */
  public ReadReply(ObservedServer server, List<ReadValue> values) {
    this(server, values, null, null);
  }
}
