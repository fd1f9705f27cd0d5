package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.RecoverableChannel;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.PendingWriteException;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Write;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What leaves: the lineage in a copy of the headers, and nothing else is changed. */
class PublishingTest extends WithBroker {
  // Around the text: the frame, the class, weight and body's length; the flags; the table's length, a name of 3, kind and length.
  private static final int FRAME_OF_ONE_HEADER = 8 + 12 + 2 + 4 + (1 + 3) + 1 + 4;
  private static final Keys KEYS = Keys.of(Map.of("k", octets("0123456789abcdef")));

  private static void send(Channel channel, String queue, String body) {
    done(() -> {
      channel.basicPublish("", queue, null, octets(body));
      return null;
    });
  }

  @Test
  void aWrappedChannelIsStillTheClientsOwn_PROP_17() throws Exception {
    Connection connection = a.connection(a.url(), new ConnectionFactory());
    Channel plain = connection.createChannel();
    Channel channel = AntipodeRabbit.wrap(plain, STORE);
    assertThat(channel).isInstanceOf(RecoverableChannel.class).isEqualTo(channel).isNotEqualTo(plain);
    assertThat(channel.getConnection().isOpen()).as("wrapped, and of the same connection: SHIM-50").isTrue();
    assertThat(channel.getConnection().getPort()).isEqualTo(plain.getConnection().getPort());
    assertThat(channel.getChannelNumber()).isEqualTo(plain.getChannelNumber());
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      send(plain, queue, "plain");
      send(channel, queue, "wrapped");
    }
    assertThat(headersOf(a.get(queue).getProps())).as("the channel that was passed in stays plain").isEmpty();
    assertThat(headersOf(a.get(queue).getProps())).isEqualTo(Map.of(Messages.HEADER, TEXT));
    channel.close();
    assertThat(plain.isOpen()).isFalse();
    assertThatThrownBy(() -> send(channel, queue, "late")).isInstanceOf(AlreadyClosedException.class);
  }

  @Test
  void everyFormOfPublishingCarriesTheLineage() throws Exception {
    Channel channel = a.wrapped();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      channel.basicPublish("", queue, null, octets("4"));
      channel.basicPublish("", queue, false, null, octets("5"));
      channel.basicPublish("", queue, false, false, null, octets("6"));
      channel.basicPublish("", queue, false, false, null, ByteBuffer.wrap(octets("7")), null);
    }
    for (int form = 4; form <= 7; form++) {
      GetResponse message = a.get(queue);
      assertThat(new String(message.getBody())).isEqualTo(Integer.toString(form));
      assertThat(headersOf(message.getProps())).isEqualTo(Map.of(Messages.HEADER, TEXT));
    }
  }

  @Test
  void channelsOfAWrappedConnectionAreWrapped() throws Exception {
    Connection connection = AntipodeRabbit.wrap(a.connection(), STORE);
    String queue = a.queue();
    for (Channel channel : List.of(connection.createChannel(), connection.openChannel().orElseThrow())) {
      try (LineageScope scope = Antipode.scope()) {
        scope.append(WRITE);
        assertThat(headersAfter(channel, queue, null)).isEqualTo(Map.of(Messages.HEADER, TEXT));
      }
    }
    assertThat(connection).isEqualTo(connection);
    assertThat(AntipodeRabbit.wrap(connection, STORE).isOpen()).isTrue();
  }

  @Test
  void wrappingAgainReplacesTheOptions() {
    Channel twice = AntipodeRabbit.wrap(a.wrapped(), RabbitOptions.named("other").lineageOut(false));
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      assertThat(headersAfter(twice, queue, null)).isEmpty();
    }
  }

  @Test
  void theCallersPropertiesAreNotTouched() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    Map<String, Object> mine = new HashMap<>(Map.of("mine", 1));
    AMQP.BasicProperties given = new AMQP.BasicProperties.Builder()
        .headers(mine).messageId("m").priority(3).correlationId("c").contentType("text/plain").build();
    AMQP.BasicProperties before = given.builder().headers(new HashMap<>(mine)).build();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      done(() -> {
        channel.basicPublish("", queue, given, octets("body"));
        return null;
      });
    }
    assertThat(given).isEqualTo(before);
    AMQP.BasicProperties received = a.get(queue).getProps();
    assertThat(headersOf(received)).isEqualTo(Map.of("mine", 1, Messages.HEADER, TEXT));
    assertThat(List.of(received.getMessageId(), received.getPriority(), received.getCorrelationId()))
        .isEqualTo(List.of("m", 3, "c"));
  }

  @Test
  void nothingIsAddedWithoutALineage() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    assertThat(headersAfter(channel, queue, null)).as("outside any scope").isEmpty();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(headersAfter(channel, queue, null)).as("an empty lineage").isEmpty();
    }
  }

  @Test
  void aStampedQueueCarriesTheEmptyLineageToo() {
    Channel channel = a.wrapped(options().stamped(true));
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(headersAfter(channel, queue, null)).isEqualTo(Map.of(Messages.HEADER, "1"));
    }
    assertThat(headersAfter(channel, queue, null)).as("outside any scope nobody knows").isEmpty();
  }

  @Test
  void noIdentifierOfTheMessageIsAppended_PROP_20_SHIM_17() {
    Channel channel = a.wrapped();
    try (LineageScope scope = Antipode.scope()) {
      headersAfter(channel, a.queue(), messageId("m"));
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY);
    }
  }

  @Test
  void trustAndOptionsDecideWhatLeaves_TRUST_31() {
    String queue = a.queue();
    Channel shut = a.wrapped(options().lineageOut(false));
    Channel channel = a.wrapped();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      assertThat(headersAfter(shut, queue, null)).isEmpty();
      AMQP.BasicProperties relayed = headers(Map.of(Messages.HEADER, "1~x..e.1", "mine", 1));
      assertThat(headersAfter(shut, queue, relayed))
          .as("what came in must not leave by such a channel either").isEqualTo(Map.of("mine", 1));
      Antipode.configure(Settings.defaults().trust(Trust.NONE));
      assertThat(headersAfter(channel, queue, null)).isEmpty();
      Antipode.configure(Settings.defaults().trust(Trust.KEY).keys(KEYS));
      assertThat((String) headersAfter(channel, queue, null).get(Messages.HEADER)).startsWith(TEXT + "~_.h.k.");
    }
  }

  @Test
  void anApplicationsOwnHeaderOfThatNameIsLeftAlone() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      for (Object own : List.of("the horse's", 7, 1, Map.of("a", 1))) {
        assertThat(headersAfter(channel, queue, headers(Map.of(Messages.HEADER, own))))
            .isEqualTo(Map.of(Messages.HEADER, own));
      }
    }
    assertThat(logs.text()).contains("is no lineage");
  }

  /** A relay: what the message depended on goes on, joined with what the scope has. */
  @Test
  void propertiesThatCameInMayBePublishedAgain() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    AMQP.BasicProperties came = stamped(ACL);
    AMQP.BasicProperties both =
        headers(Map.of(Messages.HEADER, ACL, Messages.JMS_PROPERTY, "1~img..0-1.3", "mine", 1));
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      assertThat(headersAfter(channel, queue, came))
          .isEqualTo(Map.of(Messages.HEADER, "1~acl..0-1.7~blog..0-1.42"));
      assertThat(headersAfter(channel, queue, both))
          .isEqualTo(Map.of(Messages.HEADER, "1~acl..0-1.7~blog..0-1.42~img..0-1.3", "mine", 1));
    }
    assertThat(headersAfter(channel, queue, came))
        .as("outside any scope it goes on as it is").isEqualTo(Map.of(Messages.HEADER, ACL));
    Antipode.configure(Settings.defaults().trust(Trust.KEY).keys(KEYS));
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      assertThat((String) headersAfter(channel, queue, came).get(Messages.HEADER))
          .as("an unsealed lineage must not be sealed by us, nor look empty").startsWith(TEXT + "~_.i~_.h.k.");
    }
  }

  /** PROP-37: a copy that is not tracked would prove that the first one arrived; an application's own id stays. */
  @ParameterizedTest
  @NullSource
  @ValueSource(strings = {"post-42", "0123456789abcdef0123456789abcdef"})
  void aCopyThatIsNotTrackedCarriesNoMarkOfTheFirst(String id) throws IOException {
    String queue = a.queue();
    String copies = a.queue();
    Channel plain = a.wrapped();
    try (LineageScope scope = Antipode.scope()) {
      a.wrapped(options().track(true)).basicPublish("", queue, id == null ? null : messageId(id), octets("42"));
    }
    GetResponse received = a.get(queue);
    String mark = Marks.of(received.getProps());
    assertThat(headersOf(received.getProps()).get(Messages.HEADER).toString()).contains(mark);
    try (LineageScope scope = AntipodeRabbit.scopeOf(plain, received.getProps())) {
      plain.basicPublish("", copies, received.getProps(), octets("in its scope"));
    }
    try (LineageScope scope = Antipode.scope()) {
      plain.basicPublish("", copies, received.getProps(), octets("in another"));
    }
    plain.basicPublish("", copies, received.getProps(), octets("outside"));
    for (int copy = 0; copy < 3; copy++) {
      AMQP.BasicProperties copied = a.get(copies).getProps();
      assertThat(Marks.of(copied)).isEqualTo(id);
      assertThat(headersOf(copied)).containsKey(Messages.HEADER).doesNotContainKey(Marks.HEADER);
    }
    assertThat(Marks.of(received.getProps())).as("the caller's are not touched").isEqualTo(mark);
  }

  /** Published again with the properties that it came with, inside a scope and outside any. */
  @Test
  void aLineageThatWasNotBelievedDoesNotTravelOn_TRUST_5() {
    Channel channel = a.wrapped(options().lineageIn(false));
    String queue = a.queue();
    for (String name : List.of(Messages.HEADER, Messages.JMS_PROPERTY)) {
      AMQP.BasicProperties came = headers(Map.of(name, ACL, "mine", 1));
      try (LineageScope scope = AntipodeRabbit.scopeOf(channel, came)) {
        assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY);
        assertThat(headersAfter(channel, queue, came)).isEqualTo(Map.of("mine", 1));
        scope.append(WRITE);
        assertThat(headersAfter(channel, queue, came)).isEqualTo(Map.of("mine", 1, Messages.HEADER, TEXT));
      }
      assertThat(headersAfter(channel, queue, came)).isEqualTo(Map.of("mine", 1, Messages.HEADER, "1~_.i")); // SCOPE-31
      assertThat(came.getHeaders()).isEqualTo(Map.of(name, ACL, "mine", 1));
    }
  }

  @Test
  void whatAConsumerRemovedDoesNotComeBackByItsOwnMessage() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    a.publish("", queue, stamped("1~acl..0-1.7~blog..0-1.42"), "");
    GetResponse message = get(channel, queue, true);
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, message.getProps())) {
      scope.remove("acl");
      assertThat(headersAfter(channel, queue, message.getProps())).isEqualTo(Map.of(Messages.HEADER, TEXT));
    }
  }

  @Test
  void aWriteThatIsPendingMarksTheMessage_SCOPE_16() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    RegisteredStore orders = Shims.join(StoreOptions.named("orders"), RabbitShim::new);
    try (LineageScope scope = Antipode.scope(); Write write = orders.begin(Key.of("1"))) {
      assertThat(headersAfter(channel, queue, null)).isEqualTo(Map.of(Messages.HEADER, "1~_.i.orders"));
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      assertThatThrownBy(() -> send(channel, queue, "too early")).isInstanceOf(PendingWriteException.class);
      assertThat(a.count(queue)).isZero();
      write.abandon();
      assertThat(scope.pending()).isEmpty();
    }
  }

  /** A message whose headers pass the frame cannot be sent; the headers of the application pass. */
  @Test
  void aLineageNeverMakesAFrameTooLong_PROP_19() {
    String queue = a.queue();
    Channel channel = a.wrapped();
    Channel strict = a.wrapped(options().onNoRoom(OnNoRoom.RAISE));
    int most = channel.getConnection().getFrameMax();
    assertThat(most).isGreaterThanOrEqualTo(4096);
    Map<String, Object> fits = Map.of("big", "x".repeat(most - 60));
    Map<String, Object> nearly = Map.of("big", "x".repeat(most - 200), "nested", Map.of("a", List.of(1)));
    Map<String, Object> small = Map.of("nested", Map.of("a", List.of(1)));
    try (LineageScope scope = Antipode.scope()) {
      scope.append(IntStream.range(0, 20)
          .mapToObj(number -> WriteId.position("store-" + number, "0123456789abcdef", 1_000_000_000_000L))
          .toList());
      assertThat(headersAfter(channel, queue, headers(fits))).isEqualTo(fits);
      assertThat(logs.text()).contains("no room for its lineage");
      assertThatThrownBy(() -> headersAfter(strict, queue, headers(fits)))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("no room");
      // As much as the application can send at all: the lineage is missed, and not in silence.
      Map<String, Object> all = Map.of("big", "x".repeat(most - FRAME_OF_ONE_HEADER));
      assertThat(headersAfter(channel, queue, headers(all))).isEqualTo(all);
      assertThatThrownBy(() -> headersAfter(strict, queue, headers(all)))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("no room");
      Map<String, Object> marked = new HashMap<>(nearly);
      marked.put(Messages.HEADER, "1~_.i");
      assertThat(headersAfter(channel, queue, headers(nearly))).isEqualTo(marked);
      String sent = (String) headersAfter(channel, queue, headers(small)).get(Messages.HEADER);
      assertThat(Lineage.deserialize(sent).isComplete()).isTrue();
    }
  }

  @Test
  void modeOffAddsNothing_PROP_26() {
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    Channel channel = a.wrapped(options().track(true).stamped(true));
    String queue = a.queue();
    try (LineageScope scope = Antipode.messageScope(ACL)) {
      done(() -> {
        channel.basicPublish("", queue, null, octets(""));
        return null;
      });
      AMQP.BasicProperties received = a.get(queue).getProps();
      assertThat(headersOf(received)).isEqualTo(Map.of(Messages.HEADER, ACL));
      assertThat(received.getMessageId()).isNull();
      assertThat(scope.lineage().serialize()).isEqualTo(ACL);
    }
  }

  @Test
  void octetsAsHeadersPass() {
    Channel channel = a.wrapped();
    String queue = a.queue();
    byte[] raw = {(byte) 0xff};
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      Map<String, Object> sent = headersAfter(channel, queue, headers(Map.of("b", raw)));
      assertThat(Arrays.equals((byte[]) sent.get("b"), raw)).isTrue();
      assertThat(sent.get(Messages.HEADER)).isEqualTo(TEXT);
    }
  }

  @Test
  void theLineageOfAWriteToAReplicatedStoreLeaves() {
    Blog blog = new Blog();
    Channel channel = a.wrapped();
    try (LineageScope scope = Antipode.scope()) {
      blog.inA.set("post:42", "hi");
      String sent = (String) headersAfter(channel, a.queue(), null).get(Messages.HEADER);
      assertThat(Lineage.deserialize(sent)).isEqualTo(scope.lineage());
    }
  }
}
