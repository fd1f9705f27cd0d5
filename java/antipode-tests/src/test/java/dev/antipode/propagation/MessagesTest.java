package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.Delivery;
import dev.antipode.Gap;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.PendingWriteException;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.shim.LineageAtRest;
import dev.antipode.shim.PendingWrite;
import dev.antipode.testing.AntipodeIsolated;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Messages and values: one scope each, and the lineage that is sent or rests (PROP-17, PROP-18, PROP-20, PROP-21, TRUST-31). */
@ExtendWith(AntipodeIsolated.class)
class MessagesTest {
  private static final Lineage POSTS = Lineage.of(WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042));
  private static final String TEXT = POSTS.serialize();

  /** PROP-17, PROP-18, SCOPE-6. */
  @Test
  void aMessageOpensAScopeOfItsOwn() {
    List<Map<String, ?>> sources = List.of(
        Map.of("antipode-lineage", TEXT),
        Map.of("antipode_lineage", TEXT),
        Map.of("Antipode-Lineage", TEXT.getBytes()),
        Map.of("antipode-lineage", new StringBuilder(TEXT)));
    try (LineageScope outer = Antipode.scope()) {
      for (Map<String, ?> source : sources) {
        try (LineageScope scope = Antipode.messageScope(source)) {
          assertThat(scope).isNotSameAs(outer);
          assertThat(scope.lineage()).isEqualTo(POSTS);
          assertThat(scope.additions().hasContent()).isFalse();
        }
      }
      try (LineageScope scope = Antipode.messageScope(" " + TEXT + ";property=1 ")) {
        assertThat(scope.lineage()).isEqualTo(POSTS);
      }
      assertThat(outer.lineage().hasContent()).isFalse();
    }
  }

  /** LIN-17: none is none; one that was emptied on the way is a loss (WIRE-30). */
  @Test
  void aMessageWithoutALineageIsEmptyAndComplete() {
    Map<String, Object> nothing = new HashMap<>();
    nothing.put("antipode-lineage", null);
    for (Map<String, ?> source : List.of(Map.<String, Object>of(), Map.<String, Object>of("other", "x"), nothing)) {
      try (LineageScope scope = Antipode.messageScope(source)) {
        assertThat(scope.lineage().hasContent()).isFalse();
      }
    }
    for (String none : new String[] {null, ""}) {
      try (LineageScope scope = Antipode.messageScope(none)) {
        assertThat(scope.lineage().hasContent()).isFalse();
      }
    }
    for (Object malformed : new Object[] {"", 1, 1.0, true, List.of(TEXT)}) { // PROP-17: a number 1 is not the empty lineage
      try (LineageScope scope = Antipode.messageScope(Map.of("antipode-lineage", malformed))) {
        assertThat(scope.lineage().isComplete()).isFalse();
        assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("malformed");
      }
    }
  }

  /** TRUST-4, TRUST-31. */
  @Test
  void theOptionsAndTrustDecide() {
    try (LineageScope scope = Messages.open(TEXT, new Messages.Options(false, null, "posts"))) {
      assertThat(scope.lineage().hasContent()).isFalse();
      assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("untrusted");
    }
    Antipode.configure(Settings.defaults().edge(true));
    try (LineageScope scope = Antipode.messageScope(TEXT)) {
      assertThat(scope.lineage().hasContent()).isFalse();
    }
    Delivery delivery = new Delivery(true, "");
    try (LineageScope scope = Messages.open(TEXT, new Messages.Options(true, delivery, "posts"))) {
      assertThat(scope.lineage()).isEqualTo(POSTS);
      assertThat(scope.delivery()).isSameAs(delivery);
      assertThat(Messages.outgoing(false)).isNull();
      assertThat(Messages.outgoing(null)).isEqualTo(TEXT);
    }
  }

  /** PROP-26: switched off, a lineage is still passed on. */
  @Test
  void switchedOffALineageIsStillPassedOn() {
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    try (LineageScope scope = Antipode.messageScope(TEXT)) {
      assertThat(Messages.outgoing(null)).isEqualTo(TEXT);
    }
  }

  /** TRUST-24, TRUST-28. */
  @Test
  void underKeyAMessageNeedsTheSeal() {
    Antipode.configure(Settings.defaults().keys(Keys.of(Map.of("k1", new byte[32]))));
    String sealed;
    try (LineageScope scope = Antipode.scope(POSTS)) {
      sealed = Messages.outgoing(null);
    }
    assertThat(sealed).startsWith(TEXT + "~_.h.k1.");
    try (LineageScope scope = Antipode.messageScope(sealed)) {
      assertThat(scope.lineage()).isEqualTo(POSTS);
    }
    try (LineageScope scope = Antipode.messageScope(TEXT + "," + sealed)) {
      assertThat(scope.lineage()).isEqualTo(POSTS);
      assertThat(scope.lineage().isComplete()).isFalse();
    }
  }

  /** WIRE-31, SCOPE-19, PROP-20. */
  @Test
  void whatIsSent() {
    assertThat(Messages.outgoing(null)).isNull();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(Messages.outgoing(null)).isNull();
      scope.transfer(POSTS);
      PendingWrite write = new PendingWrite("acl");
      scope.begin(write);
      assertThat(Messages.outgoing(null)).isEqualTo(TEXT + "~_.i.acl");
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      assertThatThrownBy(() -> Messages.outgoing(null)).isInstanceOf(PendingWriteException.class);
    }
    Antipode.configure(Settings.defaults().trust(Trust.NONE));
    try (LineageScope scope = Antipode.scope(POSTS)) {
      assertThat(Messages.outgoing(null)).isNull();
    }
  }

  /** PROP-21, SHIM-14, TRUST-31: what rests beside values. */
  @Test
  void lineagesAtRest() {
    assertThat(LineageAtRest.text(POSTS, true)).isEqualTo(TEXT);
    assertThat(LineageAtRest.text(POSTS, false)).isEmpty();
    assertThat(LineageAtRest.text(Lineage.EMPTY, true)).isEmpty();
    assertThat(LineageAtRest.lineage(TEXT, "kv", true)).isEqualTo(POSTS);
    assertThat(LineageAtRest.lineage(TEXT, "kv", false)).isSameAs(Lineage.EMPTY);
    assertThat(LineageAtRest.lineage((String) null, "kv", true)).isSameAs(Lineage.EMPTY);
    assertThat(LineageAtRest.lineage((TEXT + " \n 1~acl..e.1").getBytes(), "kv", true).stores())
        .containsExactly("acl", "blog-posts");
    Lineage broken = LineageAtRest.lineage("hello " + TEXT, "kv", true);
    assertThat(broken).isEqualTo(POSTS);
    assertThat(broken.incomplete()).containsExactly("kv");
  }
}
