package dev.antipode.postgresql;

import dev.antipode.ConfigurationException;
import dev.antipode.observer.Observers;
import dev.antipode.postgresql.PositionQuery.Answers;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.postgresql.core.BaseConnection;

/** What one connection has found out about its server; shared by all wraps of the connection. */
final class KnownServer {
  private static final Map<BaseConnection, KnownServer> ALL = Collections.synchronizedMap(new WeakHashMap<>());

  /** How long a segment of the log is; 0 until it was asked for. */
  long segment;

  long timeline;

  /** Of {@link #timeline}; empty until it was asked for. */
  String epoch = "";

  private RegisteredStore store; // whose the connection is
  private OpenWrite ongoing = new OpenWrite();

  final Steps steps = new Steps();

  /** Of what moments the data are that may be read later. */
  final Moments moments = new Moments();

  private KnownServer() {}

  /** That of the driver's own connection. */
  static KnownServer of(BaseConnection physical) {
    return ALL.computeIfAbsent(physical, first -> new KnownServer());
  }

  /**
   * Return what is written to this store on the connection, whichever wrap of it sends it.
   *
   * @throws ConfigurationException where it is wrapped for another store: whoever ends a transaction ends it for one alone
   */
  synchronized OpenWrite ongoing(RegisteredStore now) {
    boolean isInForce = store != null && Shims.find(store.name()) == store;
    if (isInForce && store != now) {
      throw new ConfigurationException(
          "AP503",
          "one connection is wrapped as store \"%s\" and as store \"%s\": it leads to one server, which has one name. Give"
                  .formatted(store.name(), now.name())
              + " both wraps the same one");
    }
    if (store != now) {
      store = now;
      ongoing = new OpenWrite();
    }
    return ongoing;
  }

  /** Asks which system and branch this is; once a connection, and again after a promotion under it. */
  void learn(Binding binding, BaseConnection physical, long current) {
    String[] facts = PositionQuery.ask(physical, Questions.FACTS).lastRow();
    if (facts == null) {
      return;
    }
    segment = facts[2] == null ? 0 : Long.parseLong(facts[2]);
    String word = "t".equals(facts[1]) ? marked(binding, physical) : unmarked(binding, physical);
    timeline = current;
    epoch = new Epoch(Long.parseUnsignedLong(facts[0]), current, word).toString();
  }

  private static String marked(Binding binding, BaseConnection physical) {
    String store = binding.store().name();
    Answers answers = PositionQuery.ask(physical, Questions.MARK);
    String[] row = answers.lastRow();
    if (row != null && row[0] != null) {
      Observers.events().onMarksMissing(store, null);
      return row[0];
    }
    Observers.events().onMarksMissing(store, answers.refusal());
    binding.say("AP508", "marks", "the epochs of " + store + " cannot be marked: " + answers.refusal());
    return "";
  }

  private static String unmarked(Binding binding, BaseConnection physical) {
    String store = binding.store().name();
    String words = Fitness.noTable(store, physical.getQueryExecutor().getUser());
    Observers.events().onMarksMissing(store, words);
    binding.say("AP508", "marks", store + ": " + words);
    return "";
  }
}
