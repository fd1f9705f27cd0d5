package dev.antipode.vectors;

import static dev.antipode.Canonical.canonical;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Order;
import dev.antipode.Removal;
import dev.antipode.ScopeKind;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Write;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** What to do with the vectors of the algebra. */
final class LineageVectors {
  static final Map<String, Consumer<Vector>> KINDS = Map.of(
      "lineage-join", LineageVectors::join,
      "lineage-associate", LineageVectors::associate,
      "lineage-compare", LineageVectors::compare,
      "lineage-additions", LineageVectors::additions,
      "lineage-remove", LineageVectors::remove,
      "lineage-complete", LineageVectors::complete,
      "lineage-implausible", LineageVectors::implausible);

  private static final Map<Order, Order> MIRROR = Map.of(
      Order.BEFORE, Order.AFTER,
      Order.AFTER, Order.BEFORE,
      Order.EQUAL, Order.EQUAL,
      Order.CONCURRENT, Order.CONCURRENT);
  private static final int[][] ORDERS = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

  private LineageVectors() {}

  private static void join(Vector vector) {
    Lineage a = vector.lineage("a");
    Lineage b = vector.lineage("b");
    Lineage joined = a.union(b);
    for (Lineage each :
        List.of(joined, b.union(a), joined.union(a), joined.union(b), a.union(joined), b.union(joined))) {
      assertThat(canonical(each)).isEqualTo(vector.text("join"));
    }
  }

  private static void associate(Vector vector) {
    List<Lineage> texts = Vector.texts(vector.get("texts")).stream().map(Lineage::deserialize).toList();
    for (int[] order : ORDERS) {
      Lineage a = texts.get(order[0]);
      Lineage b = texts.get(order[1]);
      Lineage c = texts.get(order[2]);
      assertThat(canonical(a.union(b).union(c))).isEqualTo(vector.text("join"));
      assertThat(canonical(a.union(b.union(c)))).isEqualTo(vector.text("join"));
    }
  }

  private static void compare(Vector vector) {
    Lineage a = vector.lineage("a");
    Lineage b = vector.lineage("b");
    Order order = Order.valueOf(vector.text("order").toUpperCase());
    assertThat(a.compare(b)).isEqualTo(order);
    assertThat(b.compare(a)).isEqualTo(MIRROR.get(order));
    assertThat(a.equals(b)).isEqualTo(order == Order.EQUAL);
    if (order == Order.EQUAL) {
      assertThat(a).hasSameHashCodeAs(b);
    }
    assertThat(a.isCoveredBy(b)).isEqualTo(order == Order.BEFORE || order == Order.EQUAL);
  }

  private static void additions(Vector vector) {
    Lineage before = vector.lineage("before");
    Lineage after = vector.lineage("after");
    Lineage added = after.addedTo(before);
    assertThat(canonical(added)).isEqualTo(vector.text("additions"));
    assertThat(added.hasContent()).isNotEqualTo(vector.flag("nothing"));
    assertThat(canonical(before.union(added))).isEqualTo(canonical(before.union(after)));
  }

  private static void complete(Vector vector) {
    assertThat(vector.lineage("text").isComplete(Vector.texts(vector.get("stores"))))
        .isEqualTo(vector.flag("complete"));
  }

  private static void remove(Vector vector) {
    LineageScope scope = LineageScope.create(vector.lineage("start"), ScopeKind.ROOT);
    Vector.list(vector.get("steps")).forEach(step -> {
      doStep(scope, step);
      assertThat(canonical(scope.lineage())).isEqualTo(step.get("then").asText());
    });
  }

  private static void doStep(LineageScope scope, JsonNode step) {
    switch (step.get("do").asText()) {
      case "remove-entry" -> {
        WriteId id = Vector.entry(step.get("entry"));
        Removal removed = scope.remove(id);
        assertTook(removed, step);
        assertThat(removed.stillCovered().contains(id)).isEqualTo(step.get("still_covered").asBoolean());
      }
      case "remove-store" -> assertTook(scope.remove(step.get("store").asText()), step);
      case "vouch" -> scope.removeIncomplete();
      case "join" -> scope.merge(Lineage.deserialize(step.get("text").asText()));
      case "append" -> scope.append(Vector.entry(step.get("entry")));
      default -> throw new AssertionError("a step that this runner does not know: " + step);
    }
  }

  private static void assertTook(Removal removed, JsonNode step) {
    assertThat(removed.lineage().ids())
        .containsExactlyInAnyOrderElementsOf(Lineage.deserialize(step.get("took").asText()).ids());
  }

  private static void implausible(Vector vector) {
    WriteId received = Vector.entry(vector.get("received"));
    RegisteredStore store = Shims.join(
        StoreOptions.named(received.store()),
        received.isPosition() ? VectorShim.Positions::new : VectorShim::new);
    try (LineageScope scope = LineageScope.open(vector.lineage("at_sending"), ScopeKind.ROOT)) {
      try (Write write = store.begin(received.key())) {
        scope.transfer(vector.lineage("at_reply"));
        write.record(received.version());
      }
      assertThat(canonical(scope.lineage())).isEqualTo(vector.text("result"));
      assertThat(scope.gaps().stream().anyMatch(gap -> gap.reason().equals("implausible")))
          .isEqualTo(vector.flag("dropped"));
    }
  }
}
