package dev.antipode.redis;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A command's words, the name first, whatever client it came by. */
interface CommandWords {
  /** How many there are. */
  int size();

  /** One of them, as it is sent. */
  byte[] get(int place);

  /** These words: octets as they are, and anything else as text. */
  static CommandWords of(Object... words) {
    List<byte[]> octets = new ArrayList<>(words.length);
    for (Object word : words) {
      octets.add(word instanceof byte[] given ? given : String.valueOf(word).getBytes(StandardCharsets.UTF_8));
    }
    return of(octets);
  }

  /** These words. */
  static CommandWords of(List<byte[]> words) {
    return new GivenWords(words);
  }

  /** A copy that may be changed. */
  default List<byte[]> copy() {
    List<byte[]> words = new ArrayList<>(size());
    for (int place = 0; place < size(); place++) {
      words.add(get(place));
    }
    return words;
  }

  /** Words that are there already. */
  record GivenWords(List<byte[]> words) implements CommandWords {
    @Override
    public int size() {
      return words.size();
    }

    @Override
    public byte[] get(int place) {
      return words.get(place);
    }
  }
}
