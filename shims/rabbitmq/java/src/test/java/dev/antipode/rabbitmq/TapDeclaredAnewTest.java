package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import dev.antipode.Verdict;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Taps whose stream goes away, and is declared anew: its offsets begin anew, too (SHIM-17). */
class TapDeclaredAnewTest extends WithTaps {
  /** What a stream has from its beginning up to this message, as a plain consumer reads it; what came in ten seconds else. */
  private List<String> streamed(String queue, String upTo) throws Exception {
    List<String> marks = new CopyOnWriteArrayList<>();
    Channel channel = b.channel();
    channel.basicQos(100);
    channel.basicConsume(
        queue,
        false,
        Map.of(ChannelConsumer.STREAM_OFFSET, "first"),
        (consumer, delivery) -> {
          marks.add(Marks.of(delivery.getProperties()));
          channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        },
        consumer -> {});
    try {
      until(() -> marks.contains(upTo), "the stream's last message", Duration.ofSeconds(10));
    } catch (AssertionError notThere) {
      return List.copyOf(marks);
    } finally {
      channel.abort();
    }
    return List.copyOf(marks);
  }

  @Test
  void aTapWhoseStreamGoesAwayProvesNothingMore() throws Exception {
    String exchange = b.exchange("fanout");
    b.own().queueBind(b.queue(), exchange, "");
    Tap tap = b.tap(exchange);
    AntipodeRabbit.register(options().tap(tap));
    arrive(exchange, "before");
    assertThat(verdict("before")).isEqualTo(Verdict.VISIBLE);
    b.own().queueDelete(tap.queue());
    assertThat(verdict(message("after"), Duration.ofSeconds(2))).isEqualTo(Verdict.UNPROVEN);
    String again = inAStreamDeclaredAnew(exchange, tap);
    until(() -> verdict(again) == Verdict.VISIBLE, "a stream that was declared anew is read", Duration.ofSeconds(90));
  }

  /**
   * One message, sent once to a stream that the broker says has it, and nothing else: a busy broker gives the first messages to
   * the stream of that name that it is just deleting, and then it is deleted and declared again.
   */
  private String inAStreamDeclaredAnew(String exchange, Tap tap) {
    String[] sent = new String[1];
    until(() -> {
      b.own().queueDelete(tap.queue());
      AntipodeRabbit.declareTap(b.own(), exchange, tap.queue());
      sent[0] = arrived(exchange, 1).get(0);
      try {
        until(() -> b.count(tap.queue()) == 1, "the stream has it", Duration.ofSeconds(10));
        return true;
      } catch (AssertionError notThere) {
        return false;
      }
    }, "a stream that has its message", Duration.ofSeconds(90));
    return sent[0];
  }

  /** Its offsets begin anew: neither a place behind its end nor one in its middle may be read on from. */
  @ParameterizedTest
  @CsvSource({"50, 20", "20, 50", "30, 30", "0, 10"})
  void aStreamDeclaredAnewWhileNobodyReadsIsReadWhole(int before, int after) throws Exception {
    String exchange = b.exchange("fanout");
    b.own().queueBind(b.queue(), exchange, "");
    Tap tap = b.tap(exchange);
    AntipodeRabbit.register(options().tap(tap));
    List<String> old = arrived(exchange, before);
    if (before > 0) {
      assertThat(verdict(old.get(before - 1))).isEqualTo(Verdict.VISIBLE);
    }
    server().retire();
    List<String> anew = new CopyOnWriteArrayList<>();
    until(() -> { // a busy broker gives the first messages to the stream of that name that it is just deleting
      b.own().queueDelete(tap.queue());
      AntipodeRabbit.declareTap(b.own(), exchange, tap.queue());
      anew.clear();
      anew.addAll(arrived(exchange, after));
      return streamed(tap.queue(), anew.get(after - 1)).containsAll(anew);
    }, "the new stream has all", Duration.ofSeconds(90));
    String last = anew.get(after - 1);
    until(() -> verdict(message(last), FIVE) == Verdict.VISIBLE, "the new stream is read", Duration.ofSeconds(90));
    assertThat(anew).allMatch(each -> verdict(each) == Verdict.VISIBLE);
    assertThat(old).as("arrived stays arrived").allMatch(each -> verdict(each) == Verdict.VISIBLE);
  }
}
