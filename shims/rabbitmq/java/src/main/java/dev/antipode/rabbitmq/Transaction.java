package dev.antipode.rabbitmq;

import dev.antipode.LineageScope;
import dev.antipode.Opaque;
import dev.antipode.shim.Write;
import java.util.ArrayList;
import java.util.List;

/** A transactional channel: what was published counts when it is committed, or never (SHIM-11). */
final class Transaction {
  private List<SentMessage> sent = new ArrayList<>();
  private int ends;

  private record SentMessage(Write write, Opaque version) {}

  /** How many transactions the broker has dropped so far. */
  synchronized int ends() {
    return ends;
  }

  /**
   * A message was handed to the broker, which keeps it back.
   *
   * @param endsBefore {@link #ends} before it was sent. Where one was dropped meanwhile, nobody knows which one had it
   */
  synchronized void add(Write write, Opaque version, int endsBefore) {
    if (ends == endsBefore) {
      sent.add(new SentMessage(write, version));
    } else {
      write.outcomeUnknown();
    }
  }

  private synchronized List<SentMessage> take() {
    List<SentMessage> taken = sent;
    sent = new ArrayList<>();
    return taken;
  }

  /** A commit of the client's own. */
  @FunctionalInterface
  interface Commit {
    Object run() throws Throwable;
  }

  /** Commits; where that fails nobody knows what became of the messages. */
  Object commit(Commit commit) throws Throwable {
    List<SentMessage> taken = take(); // first: should the channel end now, they are in doubt, and not dropped
    taken.forEach(each -> each.write().executedBy(LineageScope.current()));
    Object result;
    try {
      result = commit.run();
    } catch (Throwable error) {
      taken.forEach(each -> each.write().outcomeUnknown());
      throw error;
    }
    taken.forEach(each -> each.write().record(each.version()));
    return result;
  }

  /** The broker has dropped the messages, or does so as the channel ends. */
  void rolledBack() {
    List<SentMessage> dropped;
    synchronized (this) {
      ends++;
      dropped = take();
    }
    dropped.forEach(each -> each.write().abandon());
  }
}
