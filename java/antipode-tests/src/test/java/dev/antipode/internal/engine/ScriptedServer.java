package dev.antipode.internal.engine;

import dev.antipode.WriteId;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** One server of a script: what it shows, and whether the questions that ask for writes are held. */
final class ScriptedServer {
  private record Question(List<WriteId> ids, CompletableFuture<ScriptedReply> reply) {}

  final String name;
  private final Map<WriteId, String> names;
  private volatile Server channel;
  // Under the lock of this:
  private ScriptedReply shows;
  private boolean holds;
  private boolean holdsAll;
  private Question held;

  /** {@code names}: those of the writes, in the script. */
  ScriptedServer(String name, Map<WriteId, String> names, ScriptedReply shows) {
    this.name = name;
    this.names = names;
    this.shows = shows;
  }

  /** Calls as a channel's thread does, and waits for it. */
  static void push(Runnable call) {
    CompletableFuture.runAsync(call, EngineTest::started).orTimeout(1, TimeUnit.MINUTES).join();
  }

  /** Answer the engine's question, which may be held before. */
  List<Visibility> ask(List<WriteId> ids, Server server) throws Exception {
    ScriptedReply reply = question(ids).get(10, TimeUnit.MINUTES);
    return reply.answers(ids, server, names);
  }

  private synchronized CompletableFuture<ScriptedReply> question(List<WriteId> ids) {
    held = holdsAll || (holds && !ids.isEmpty()) ? new Question(ids, new CompletableFuture<>()) : null;
    return held == null ? CompletableFuture.completedFuture(shows) : held.reply;
  }

  /** Return whether a question is held that asks for these writes; let go one that does not. */
  synchronized boolean isAskedFor(List<String> writes) {
    boolean isThere = held != null && held.ids.stream().map(names::get).toList().containsAll(writes);
    if (!isThere) {
      letGo(shows);
    }
    return isThere;
  }

  synchronized void hold() {
    holds = true;
  }

  /** Holds nothing any more. */
  synchronized void open() {
    holds = false;
    holdsAll = false;
    letGo(shows);
  }

  synchronized void show(ScriptedReply reply) {
    shows = reply;
  }

  /** Lets the question go that is held. */
  synchronized void letGo(ScriptedReply reply) {
    if (held != null) {
      held.reply.complete(reply);
      held = null;
    }
  }

  /** Holds also what asks for nothing; behind that, lets go what would not have been held. */
  synchronized void holdAll(boolean value) {
    holdsAll = value;
    boolean isHeldBefore = holds && held != null && !held.ids.isEmpty();
    if (!value && !isHeldBefore) {
      letGo(shows);
    }
  }

  /** The engine's channel to this server is open. */
  void open(Server opened) {
    channel = opened;
  }

  /** Return the engine's own whose channel is open; null where none is. */
  Server channel() {
    return channel;
  }
}
