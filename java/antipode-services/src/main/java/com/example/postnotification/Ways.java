package com.example.postnotification;

import java.util.LinkedHashMap;
import java.util.Map;

/** The ways in which an adversary's program uses a store's clients, by their names: benchmarks/adversary.md. */
final class Ways {
  /** What is done with a client; a row where it writes or reads one. Gives what the client gave. */
  @FunctionalInterface
  interface Way<C> {
    Object go(C client, String row) throws Exception;
  }

  /** A client, in whatever form its ways take it. */
  interface Client {
    void close() throws Exception;
  }

  /** A store whose clients are played. */
  interface Store {
    /** A new client of the primary; the number chooses which one, and how it begins. */
    Client open(int kind, boolean plain) throws Exception;

    /** A client of a replica whose reads wait. */
    Client reader() throws Exception;

    /** The ways of a kind: {@code write}, {@code act} or {@code read}. */
    Map<String, Way<Client>> of(String kind);

    /** Whether the plain client throws such a thing. */
    boolean isOwn(Throwable error);
  }

  private Ways() {}

  /** A table of ways that is filled. */
  static final class Table<C extends Client> {
    private final Class<C> type;
    private final Map<String, Way<Client>> ways = new LinkedHashMap<>();

    Table(Class<C> type) {
      this.type = type;
    }

    Table<C> add(String name, Way<C> way) {
      ways.put(name, (client, row) -> way.go(type.cast(client), row));
      return this;
    }

    Map<String, Way<Client>> all() {
      return ways;
    }
  }
}
