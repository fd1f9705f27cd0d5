package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.LongString;
import com.rabbitmq.client.impl.LongStringHelper;
import dev.antipode.Antipode;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.MalformedLineageException;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.Shims;
import dev.antipode.testing.Isolated;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

/** Whatever a header holds, a consumer goes on: nothing that came in throws, and nothing unreadable looks empty (WIRE-25). */
class HeaderFuzzTest {
  private Isolated isolated;

  @BeforeTry
  void begin() {
    isolated = new Isolated();
  }

  @AfterTry
  void end() {
    isolated.close();
  }

  @Provide
  Arbitrary<Object> values() {
    Arbitrary<String> lineages = Arbitraries.of(
        "1", "1~a..e.1", "1~a.k._.m", "1~_.i", "1~a..e.1~_.x.y", " 1~a..e.1 ", "1~a..e.1;p=1", "1~a..e.1,1~b..e.2");
    Arbitrary<String> almost = Arbitraries.strings().withChars("1~._-aAZ0%;, \t\n").ofMaxLength(40);
    Arbitrary<String> any = Arbitraries.strings().ofMaxLength(30);
    Arbitrary<Object> texts = Arbitraries.oneOf(lineages, almost, any).map(text -> (Object) text);
    Arbitrary<Object> asTheClientGivesThem = Arbitraries.oneOf(lineages, almost, any).map(LongStringHelper::asLongString);
    Arbitrary<Object> others = Arbitraries.oneOf(
        Arbitraries.bytes().array(byte[].class).ofMaxSize(30).map(each -> (Object) each),
        Arbitraries.longs().map(each -> (Object) each),
        Arbitraries.of(true, false).map(each -> (Object) each),
        Arbitraries.integers().between(0, 1 << 30).map(each -> (Object) new Date(each * 1000L)));
    Arbitrary<Object> scalars = Arbitraries.oneOf(texts, asTheClientGivesThem, others);
    return Arbitraries.oneOf(
        scalars,
        scalars,
        scalars.list().ofMaxSize(3).map(each -> (Object) each),
        Arbitraries.maps(Arbitraries.strings().ofMaxLength(5), scalars).ofMaxSize(3).map(each -> (Object) each));
  }

  @Provide
  Arbitrary<Map<String, Object>> headers() {
    Arbitrary<String> names = Arbitraries.oneOf(
        Arbitraries.of(
            Messages.HEADER, Messages.JMS_PROPERTY, "Antipode-Lineage", "ANTIPODE-LINEAGE", "antipode-mark", "x-other"),
        Arbitraries.strings().ofMaxLength(8));
    return Arbitraries.maps(names, values()).ofMaxSize(4);
  }

  private static Lineage opened(Map<String, Object> headers, boolean stamped) {
    RabbitOptions options = RabbitOptions.named("notifications").stamped(stamped);
    ChannelConsumer consuming =
        new ChannelConsumer(Shims.join(options.store(), RabbitShim::new), options, new Returns(null), (tag, mark) -> {});
    AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().headers(headers).build();
    List<Lineage> seen = new ArrayList<>();
    consuming.handle(
        new Envelope(1, false, "", ""),
        properties,
        false,
        true,
        (MessageHandler<RuntimeException>) () -> seen.add(LineageScope.current().lineage()));
    return seen.get(0);
  }

  @Property(tries = 500)
  void noHeadersMakeAScopeFail(@ForAll("headers") Map<String, Object> headers, @ForAll boolean stamped) {
    Lineage lineage = opened(headers, stamped);
    assertThat(Lineage.deserialize(lineage.serialize())).isEqualTo(lineage);
  }

  private static Lineage strictly(Object value) {
    try {
      boolean isText = value instanceof String || value instanceof LongString; // PROP-17: a number is none
      return isText ? Lineage.deserialize(value.toString()) : null;
    } catch (MalformedLineageException error) {
      return null;
    }
  }

  /** Against a reader of its own: the strict parser over the value as it stands. */
  @Property(tries = 500)
  void whatCannotBeReadIsIncompleteAndNeverEmpty(@ForAll("values") Object value) {
    Lineage lineage = opened(Map.of(Messages.HEADER, value), false);
    Lineage strict = strictly(value);
    if (strict != null) {
      assertThat(lineage).isEqualTo(strict);
      assertThat(lineage.incomplete()).isEqualTo(strict.incomplete());
    } else if (!lineage.hasContent()) { // looks empty: then it is, once made strict
      String text = value instanceof byte[] octets
          ? new String(octets, java.nio.charset.StandardCharsets.ISO_8859_1)
          : value.toString();
      assertThat(text).contains("1");
    }
  }

  /** Nothing is changed in what the caller gave, and no header of the application is lost. */
  @Property(tries = 500)
  void anyHeadersCanBePublishedAgain(
      @ForAll("headers") Map<String, Object> headers, @ForAll Trust trust, @ForAll boolean edge) {
    Antipode.configure(Settings.defaults()
        .trust(trust).edge(edge).keys(Keys.of(Map.of("k", "0123456789abcdef".getBytes()))));
    RabbitOptions options = RabbitOptions.named("notifications");
    Stamper stamping =
        new Stamper(Shims.join(options.store(), RabbitShim::new), options, new Room(() -> 131_072));
    Map<String, Object> before = new HashMap<>(headers);
    AMQP.BasicProperties sent;
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WriteId.position("blog", "0-1", 42));
      sent = stamping.stamped(new AMQP.BasicProperties.Builder().headers(headers).build(), null);
    }
    assertThat(headers).isEqualTo(before);
    Map<String, Object> left = new HashMap<>(sent.getHeaders());
    Object ours = left.remove(Messages.HEADER);
    left.remove(Messages.JMS_PROPERTY);
    before.remove(Messages.HEADER);
    before.remove(Messages.JMS_PROPERTY);
    assertThat(left).isEqualTo(before);
    if (trust != Trust.NONE && !headers.containsKey(Messages.HEADER) && !headers.containsKey(Messages.JMS_PROPERTY)) {
      assertThat((String) ours).startsWith("1~blog..0-1.42");
    }
  }
}
