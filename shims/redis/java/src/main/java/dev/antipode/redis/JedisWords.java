package dev.antipode.redis;

import redis.clients.jedis.CommandArguments;

/** The words of a command as Jedis holds it. */
record JedisWords(CommandArguments arguments) implements CommandWords {
  @Override
  public int size() {
    return arguments.size();
  }

  @Override
  public byte[] get(int place) {
    return arguments.get(place).getRaw();
  }

  /** A command as Jedis sends it. */
  static CommandArguments arguments(CommandWords words) {
    if (words instanceof JedisWords held) {
      return held.arguments;
    }
    byte[] name = words.get(0);
    CommandArguments made = new CommandArguments(() -> name);
    for (int place = 1; place < words.size(); place++) {
      made.add(words.get(place));
    }
    return made;
  }
}
