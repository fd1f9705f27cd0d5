package dev.antipode.vectors;

import static dev.antipode.Canonical.canonical;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.MalformedLineageException;
import dev.antipode.Ordered;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.WireForm;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.RequestScope;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** What to do with the vectors of the wire form. */
final class WireVectors {
  static final Map<String, Consumer<Vector>> KINDS = Map.of(
      "wire-decode", WireVectors::decode,
      "wire-refuse", WireVectors::refuse,
      "wire-encode", WireVectors::encode,
      "wire-escape", WireVectors::escape,
      "wire-limits", WireVectors::limits,
      "wire-hashed-key", WireVectors::hashedKey,
      "wire-hop", WireVectors::hop,
      "wire-budget", WireVectors::budget,
      "wire-serialize-limits", WireVectors::serializeLimits,
      "wire-header", WireVectors::header);

  private WireVectors() {}

  /** The strict reader: lexical, white space not stripped. */
  private static boolean accepts(String text) {
    try {
      WireForm.split(text);
      return true;
    } catch (MalformedLineageException e) {
      return false;
    }
  }

  private static Lineage reads(String text) {
    try {
      return Lineage.deserialize(text);
    } catch (MalformedLineageException e) {
      return null;
    }
  }

  private static void decode(Vector vector) {
    String text = vector.text("text");
    assertThat(accepts(text)).isTrue();
    Lineage lineage = Lineage.deserialize(text);
    Lineage expected = Vector.lineage(vector.get("lineage"));
    List<WriteId> ids = lineage.ids();
    assertThat(ids).doesNotHaveDuplicates().hasSize(lineage.size())
        .containsExactlyInAnyOrderElementsOf(Vector.entries(vector.get("lineage").get("entries")));
    assertThat(lineage.incomplete()).isEqualTo(expected.incomplete());
    assertThat(lineage).isEqualTo(expected).hasSameHashCodeAs(expected);
    assertThat(canonical(lineage)).isEqualTo(vector.text("canonical")).isEqualTo(expected.serialize());
    if (vector.flag("is_canonical")) {
      assertThat(lineage.serialize()).isEqualTo(text);
    }
    assertThat(Lineage.deserialize(lineage.serialize())).isEqualTo(lineage);
  }

  private static void refuse(Vector vector) {
    String text = vector.text("text");
    assertThat(accepts(text)).isFalse();
    Lineage read = reads(text);
    assertThat(read == null ? null : canonical(read)).isEqualTo(vector.text("reader"));
  }

  private static void encode(Vector vector) {
    if (vector.has("error")) {
      assertThatThrownBy(() -> Vector.lineage(vector.get("lineage"))).isInstanceOf(IllegalArgumentException.class);
    } else {
      assertThat(Vector.lineage(vector.get("lineage")).serialize()).isEqualTo(vector.text("text"));
    }
  }

  private static void escape(Vector vector) {
    byte[] octets = vector.octets("octets_hex");
    String spelled = vector.text("spelled");
    assertThat(Names.spell(octets)).isEqualTo(spelled);
    assertThat(Names.unspell(spelled)).isEqualTo(octets);
    assertThat(Names.isSpelled(spelled)).isTrue();
    assertThat(Names.octets(Names.text(octets))).isEqualTo(octets);
  }

  private static void limits(Vector vector) {
    String text = vector.text("text");
    assertThat(text.getBytes(StandardCharsets.UTF_8)).hasSize(vector.number("bytes"));
    assertThat(accepts(text)).isEqualTo(vector.flag("accept"));
    Lineage read = reads(text);
    if (vector.flag("accept")) {
      assertThat(read.size()).isEqualTo(vector.number("entries"));
    } else {
      assertThat(read).isNull();
    }
  }

  private static void hashedKey(Vector vector) {
    StoreOptions options = StoreOptions.named("s").hashKeys(vector.flag("hash_keys"));
    RegisteredStore store = Shims.join(options, VectorShim::new);
    WriteId id = store.writeId(Key.of(vector.octets("key_hex")), new Ordered("e", 1));
    assertThat(Lineage.of(id).serialize()).isEqualTo("1~s." + vector.text("spelled") + ".e.1");
  }

  private static void hop(Vector vector) {
    List<WriteId> ids = Vector.entries(vector.get("append"));
    Lineage lineage = vector.lineage("text");
    assertThat(lineage.including(ids).serialize()).isEqualTo(vector.text("result"));
    Lineage oneByOne = lineage;
    for (WriteId id : ids) {
      oneByOne = oneByOne.including(id);
    }
    assertThat(oneByOne.serialize()).isEqualTo(vector.text("result"));
    assertThat(lineage.union(Lineage.of(ids)).serialize()).isEqualTo(vector.text("result"));
  }

  private static void budget(Vector vector) {
    Lineage lineage = vector.lineage("text");
    List<String> changed = vector.has("changed") ? Vector.texts(vector.get("changed")) : List.of();
    Lineage fitted = lineage.fit(vector.number("budget"), () -> changed);
    assertThat(fitted.serialize()).isEqualTo(vector.text("result"));
    Set<String> leftOut = new HashSet<>(lineage.stores());
    leftOut.removeAll(fitted.stores());
    assertThat(leftOut).containsExactlyInAnyOrderElementsOf(Vector.texts(vector.get("left_out")));
    assertThat(lineage.serialize()).isEqualTo(vector.text("text"));
  }

  private static void serializeLimits(Vector vector) {
    String text = Vector.lineage(vector.get("lineage")).serialize();
    assertThat(text).isEqualTo(vector.text("text"));
    assertThat(accepts(text)).isTrue();
  }

  private static void header(Vector vector) {
    List<String> values = Vector.texts(vector.get("values"));
    Carriers.InboundHeaders came = Carriers.unwrap(values);
    assertThat(came.texts().stream().filter(text -> reads(text) == null)).hasSize(vector.number("malformed"));
    HeaderCarrier headers = HeaderCarrier.ofLists(Map.of(Carriers.LINEAGE_HEADER, values));
    try (RequestScope request = Propagation.extractRequest(headers, "127.0.0.1")) {
      if (String.valueOf(vector.text("text")).contains("~_.msg.")) { // a message's name is no part of the scope's lineage
        Lineage joined = came.texts().stream().map(Lineage::deserialize).reduce(Lineage.EMPTY, Lineage::union);
        assertThat(canonical(joined)).isEqualTo(vector.text("text"));
      } else {
        assertThat(came.hasLineage() ? canonical(request.scope().lineage()) : null).isEqualTo(vector.text("text"));
      }
    }
  }
}
