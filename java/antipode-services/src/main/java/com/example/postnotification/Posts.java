package com.example.postnotification;

/** The posts at one server. */
interface Posts {
  /** Writes a post; returns when the store has acknowledged it. */
  void write(String key, byte[] body) throws Exception;

  /** Reads a post; null where there is none. */
  byte[] read(String key) throws Exception;

  /** A client of a server, plain or wrapped as the setup says. */
  static Posts open(Setup setup, String server) {
    String url = setup.posts().get(server);
    return switch (setup.options().postStorage()) {
      case "redis" -> new RedisPosts(setup, url);
      case "postgresql" -> new PostgresqlPosts(setup, url);
      default -> throw unknown(setup);
    };
  }

  /** This process waits for the posts at all replicas, and has no client of them. */
  static void register(Setup setup) {
    switch (setup.options().postStorage()) {
      case "redis" -> RedisPosts.register(setup);
      case "postgresql" -> PostgresqlPosts.register(setup);
      default -> throw unknown(setup);
    }
  }

  private static IllegalArgumentException unknown(Setup setup) {
    return new IllegalArgumentException(
        "post_storage " + setup.options().postStorage() + ": want one of redis, postgresql");
  }
}
