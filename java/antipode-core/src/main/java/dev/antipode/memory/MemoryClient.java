package dev.antipode.memory;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.ScopeLog;
import dev.antipode.StoreOptions;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.configuration.ProcessSettings;
import dev.antipode.history.Changed;
import dev.antipode.history.Content;
import dev.antipode.history.NotedRead;
import dev.antipode.history.Recorder;
import dev.antipode.history.Seen;
import dev.antipode.propagation.AtRest;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.FollowedRead;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.WaitOnRead;
import dev.antipode.shim.Write;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * A client of one server of the embedded store. What it writes joins the current scope's lineage; inside {@code
 * reading()} what it reads is collected.
 */
public final class MemoryClient {
  private record Read(Cell cell, Ordered position) {}

  private final Target target;
  private final RegisteredStore store;
  private final Server server;
  private final boolean waitsOnRead;

  MemoryClient(Target target, RegisteredStore store, Server server, boolean waitsOnRead) {
    this.target = target;
    this.store = store;
    this.server = server;
    this.waitsOnRead = waitsOnRead;
  }

  /**
   * Writes a value.
   *
   * @throws ReadOnlyReplicaException at a replica
   */
  public void set(String key, String value) {
    write(Key.of(key), value.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Writes a value.
   *
   * @throws ReadOnlyReplicaException at a replica
   */
  public void set(String key, byte[] value) {
    write(Key.of(key), value.clone());
  }

  /** Deletes a key: a write like others. */
  public void delete(String key) {
    write(Key.of(key), null);
  }

  /** Reads a value as text; null where there is none. */
  public String get(String key) {
    byte[] value = read(Key.of(key));
    return value == null ? null : new String(value, StandardCharsets.UTF_8);
  }

  /** Reads a value; null where there is none. */
  public byte[] getOctets(String key) {
    byte[] value = read(Key.of(key));
    return value == null ? null : value.clone();
  }

  private byte[] read(Key key) {
    Reading reading = Reading.current();
    LineageScope scope = LineageScope.current();
    NotedRead noted = scope != null && Recorder.isOn() ? Recorder.noteRead(store, scope) : null;
    try {
      return read(key, reading, scope, noted);
    } finally {
      if (noted != null) { // where it was not over before
        noted.failed();
      }
    }
  }

  private byte[] read(Key key, Reading reading, LineageScope scope, NotedRead noted) {
    WaitOnRead.waitFirst(server, store.timeout(), reading, scope, waitsOnRead);
    FollowedRead followed = store.isDryRun() ? FollowedRead.of(store, isOfObjects() ? List.of(key) : null) : null;
    Read read = target.log().reading(target.node(), key, node -> found(node, key));
    if (followed != null) {
      boolean isExact = isOfObjects() && read.cell != null;
      followed.over(
          server, () -> value(read), () -> value(readAgain(key)), isExact ? Map.of(key, read.cell.version()) : Map.of());
    }
    boolean merges = scope != null && ProcessSettings.inForce().autoMerge() && store.records();
    if (noted != null) {
      tell(noted, key, read, reading != null || merges);
    }
    if (reading != null || merges) {
      Lineage depends = depends(key, read);
      if (reading != null) {
        reading.saw(depends);
      }
      if (merges) {
        scope.transferRead(depends);
      }
    }
    return value(read);
  }

  private static Read found(Node node, Key key) {
    return new Read(node.data.get(key), new Ordered(node.epoch, node.counter));
  }

  /** What the server shows now: what dry-run reads chooses nothing in monkey mode (MONKEY-6). */
  private Read readAgain(Key key) {
    return target.log().looking(target.node(), node -> found(node, key));
  }

  private static byte[] value(Read read) {
    return read.cell == null ? null : read.cell.value();
  }

  /** A recorded history is told what was read: each value says which write it is (HIST-28). */
  private void tell(NotedRead noted, Key key, Read read, boolean depends) {
    WriteId version = read.cell == null ? null : store.writeId(isOfObjects() ? key : Key.EMPTY, read.cell.version());
    WriteId covers = depends && !isOfObjects() ? store.writeId(Key.EMPTY, read.position) : null;
    noted.over(List.of(new Seen(key, content(value(read)), version)), covers);
  }

  private static Content content(byte[] value) {
    return value == null ? Content.NOTHING : Content.SOMETHING;
  }

  /** Whether writes are known by their objects. */
  private boolean isOfObjects() {
    return target.log().versions() != Versions.POSITION;
  }

  /** The lineage beside a value, with an identifier that covers the value itself (SHIM-13). */
  private Lineage depends(Key key, Read read) {
    String text = read.cell == null ? "" : read.cell.lineage();
    Lineage rest = AtRest.lineage(text, store.name(), store.options().lineageIn());
    if (target.log().versions() == Versions.POSITION) {
      return rest.including(WriteId.position(store.name(), read.position.epoch(), read.position.counter()));
    }
    return read.cell == null ? rest : rest.including(store.writeId(key, read.cell.version()));
  }

  private void write(Key key, byte[] value) {
    if (!store.records()) {
      target.log().write(target.node(), key, value, "");
      return;
    }
    LineageScope scope = LineageScope.current();
    StoreOptions options = store.options();
    String beside = "";
    if (options.restOr(Rest.FIELD) == Rest.FIELD) {
      Lineage lineage = scope == null ? ScopeLog.lineageBesideOutside(options.lineageOut(), null) : scope.outgoing();
      beside = AtRest.text(lineage, options.lineageOut());
    }
    try (Write write = store.begin(key)) {
      if (write.noted() != null) {
        write.noted().changes(List.of(new Changed(key, content(value))));
      }
      Version version;
      try {
        version = target.log().write(target.node(), key, value, beside);
      } catch (ReadOnlyReplicaException refused) {
        write.abandon();
        throw refused;
      }
      if (version == null) {
        write.abandon();
      } else {
        write.record(version);
      }
    }
  }
}
