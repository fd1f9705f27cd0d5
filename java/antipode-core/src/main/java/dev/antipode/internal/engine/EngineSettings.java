package dev.antipode.internal.engine;

import dev.antipode.ConfigurationException;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import java.util.concurrent.TimeUnit;

/**
 * The settings that the engine looks at all the time, in nanoseconds. Where those in force cannot be read anew, the ones
 * before go on: that is for a barrier to throw, not for the thread that asks a server.
 *
 * @param generation of the settings that these are
 * @param replicaOutAfter after how long a server that does not answer is left out
 * @param reconnect how old the connection to a server may grow
 * @param poll the shortest poll interval
 * @param freePathTtl how long a watermark without a live push is believed
 */
record EngineSettings(int generation, long replicaOutAfter, long reconnect, long poll, long freePathTtl) {
  private static volatile EngineSettings last = of(-1, Settings.defaults());

  /** Those in force. */
  static EngineSettings now() {
    EngineSettings known = last;
    int generation = ProcessSettings.generation();
    if (known.generation == generation) {
      return known;
    }
    try {
      Settings settings = ProcessSettings.inForce(); // may be the first look, which counts as a change
      known = of(generation, settings);
      last = known;
    } catch (ConfigurationException unreadable) {
      return known;
    }
    return known;
  }

  /** How long one question to a server may take. */
  long askTimeout() {
    return Math.min(TimeUnit.SECONDS.toNanos(1), replicaOutAfter / 2);
  }

  private static EngineSettings of(int generation, Settings settings) {
    return new EngineSettings(
        generation,
        Planner.nanos(settings.replicaOutAfter()),
        Planner.nanos(settings.reconnect()),
        Planner.nanos(settings.poll()),
        Planner.nanos(settings.freePathTtl()));
  }
}
