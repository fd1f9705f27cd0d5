package dev.antipode.redis;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;

/** The threads of all clients of Lettuce in the tests. */
final class LettuceResources {
  static final ClientResources SHARED =
      DefaultClientResources.builder().ioThreadPoolSize(2).computationThreadPoolSize(2).build();

  private LettuceResources() {}
}
