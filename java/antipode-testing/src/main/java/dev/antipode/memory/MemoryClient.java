package dev.antipode.memory;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.observer.KeyChange;
import dev.antipode.observer.Content;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.LineageAtRest;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Read;
import dev.antipode.shim.ReadValue;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Write;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A client of one server of the embedded store. What it writes joins the current scope's lineage; inside {@code
 * reading()} what it reads is collected.
 */
public final class MemoryClient {
  private record FoundValue(Cell cell, Ordered position) {}

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
    try (Read read = store.read(waitsOnRead, isOfObjects() ? List.of(key) : null)) {
      read.await(server, store.timeout());
      FoundValue found = target.log().reading(target.node(), key, node -> found(node, key));
      if (read.isObserved()) {
        List<ReadValue> values = List.of(value(key, found, read.collects()));
        read.returned(new ReadReply(server, values, () -> value(found), () -> value(readAgain(key))));
      }
      return value(found);
    }
  }

  private static FoundValue found(Node node, Key key) {
    return new FoundValue(node.data.get(key), new Ordered(node.epoch, node.counter));
  }

  /** What the server shows now: what dry-run reads chooses nothing in monkey mode (MONKEY-6). */
  private FoundValue readAgain(Key key) {
    return target.log().looking(target.node(), node -> found(node, key));
  }

  private static byte[] value(FoundValue found) {
    return found.cell == null ? null : found.cell.value();
  }

  /** What was found: each value says which write it is, and where somebody depends on it, what it depends on (SHIM-13). */
  private ReadValue value(Key key, FoundValue found, boolean collects) {
    Cell cell = found.cell;
    WriteId version = cell == null ? null : store.writeId(isOfObjects() ? key : Key.EMPTY, cell.version());
    WriteId covers = collects && !isOfObjects() ? store.writeId(Key.EMPTY, found.position) : null;
    String text = cell == null ? "" : cell.lineage();
    Lineage beside = collects ? LineageAtRest.lineage(text, store.name(), store.options().lineageIn()) : null;
    return new ReadValue(key, content(value(found)), version, covers, beside, true);
  }

  private static Content content(byte[] value) {
    return value == null ? Content.NOTHING : Content.SOMETHING;
  }

  /** Whether writes are known by their objects. */
  private boolean isOfObjects() {
    return target.log().versions() != Versions.POSITION;
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
      beside = LineageAtRest.text(lineage, options.lineageOut());
    }
    try (Write write = store.begin(key)) {
      if (write.noted() != null) {
        write.noted().changes(List.of(new KeyChange(key, content(value))));
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
