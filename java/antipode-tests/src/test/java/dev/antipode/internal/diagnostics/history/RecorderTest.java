package dev.antipode.internal.diagnostics.history;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.propagation.MessageNames;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.memory.ReadOnlyReplicaException;
import dev.antipode.observer.KeyChange;
import dev.antipode.observer.Content;
import dev.antipode.observer.ReadReply;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.ReadValue;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Write;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What the recorder writes, line by line (HIST-23 to HIST-34); what is decided of it is in {@link CheckedHistoryTest}. */
@ExtendWith(AntipodeIsolated.class)
class RecorderTest {
  private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";

  @TempDir Path temporary;
  private RecordedLines lines;
  private final MemoryStore posts =
      MemoryStore.named("posts").lag(Duration.ofMinutes(1)).versions(Versions.OBJECT);

  @BeforeEach
  void record() {
    lines = new RecordedLines(temporary.resolve("history"));
  }

  private static RegisteredStore store() {
    return Registry.current().need("posts");
  }

  private static ReadReply nothing() {
    return new ReadReply(null, List.of(new ReadValue(Key.of("1"), Content.NOTHING)));
  }

  /** HIST-6, HIST-23, HIST-25, HIST-28, HIST-37: begin, operations, end; lineages and keys, no values. */
  @Test
  void theFileAndItsLines() throws IOException {
    MemoryClient writer = posts.client("a");
    MemoryClient reader = posts.client("b");
    String text;
    try (LineageScope scope = Antipode.scope()) {
      writer.set("1", "a secret");
      text = Messages.outgoing(null);
    }
    try (LineageScope message = Antipode.messageScope(text)) {
      assertThat(reader.get("1")).isNull();
    }
    List<JsonNode> found = lines.all();
    assertThat(lines.kinds()).containsExactly("begin", "write", "send", "receive", "read", "end");
    JsonNode write = found.get(1);
    JsonNode read = found.get(4);
    assertThat(found.get(2).get("message")).isEqualTo(found.get(3).get("message"));
    assertThat(found.get(2).get("lineage")).isEqualTo(write.get("identifier"));
    assertThat(read.get("lineage")).isEqualTo(write.get("identifier"));
    assertThat(write.get("store").asText() + write.get("key").asText()).isEqualTo("posts1");
    assertThat(write.get("there").asBoolean()).isTrue();
    assertThat(read.get("value").isNull()).isTrue();
    Path file = lines.files().get(0);
    assertThat(file.getFileName().toString())
        .matches(".+-" + ProcessHandle.current().pid() + "-[0-9]+-[0-9a-f]{8}\\.jsonl");
    assertThat(Files.readString(file)).doesNotContain("secret");
  }

  /** HIST-23. */
  @Test
  void offNothingIsWrittenAndNothingAdded() {
    Antipode.configure(Settings.defaults().history(""));
    MemoryClient client = posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      assertThat(Messages.outgoing(null)).isEqualTo(scope.lineage().serialize());
      assertThat(client.get("1")).isEqualTo("x");
    }
    assertThat(Recorder.current()).isNull();
    assertThat(lines.folder()).doesNotExist();
  }

  /** HIST-7: the trace is the request. */
  @Test
  void theTraceIsTheRequest() {
    SpanContext context =
        SpanContext.create(TRACE, "b7ad6b7169203331", TraceFlags.getSampled(), TraceState.getDefault());
    try (Scope span = Span.wrap(context).makeCurrent(); LineageScope scope = Antipode.scope()) {
      posts.client("a").set("1", "x");
    }
    assertThat(lines.of("write").get(0).get("request").asText()).isEqualTo(TRACE);
  }

  /** HIST-5, HIST-26: what overlaps has a thread of its own. */
  @Test
  void whatOverlapsHasThreadsOfItsOwn() {
    MemoryClient client = posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      ReadEvent early = Recorder.current().read(scope, store(), scope.held());
      client.set("1", "x");
      ReadEvent later = Recorder.current().read(scope, store(), scope.held());
      later.returned(nothing(), null);
      early.returned(nothing(), null);
      early.returned(nothing(), null); // twice is once
    }
    assertThat(lines.of("write").get(0).get("scope").asText()).isEqualTo("root 1+1");
    assertThat(lines.of("read").stream().map(read -> read.get("scope").asText()))
        .containsExactly("root 1+2", "root 1");
  }

  /** HIST-26: a copy of a scope comes after what was before it; carried work runs in the scope itself. */
  @Test
  void copiesAndCarriedWork() throws Exception {
    MemoryClient client = posts.client("a");
    ExecutorService executor = Executors.newSingleThreadExecutor();
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      Antipode.carryAll(executor).submit(() -> client.set("2", "x")).get(20, TimeUnit.SECONDS);
      try (LineageScope copy = Antipode.detachedScope()) {
        client.set("3", "x");
      }
    } finally {
      executor.shutdown();
    }
    assertThat(lines.of("write").stream().map(write -> write.get("scope").asText()))
        .containsExactly("root 1", "root 1", "detached 2");
    JsonNode sent = lines.of("send").get(0);
    JsonNode came = lines.of("receive").get(0);
    assertThat(sent.get("message")).isEqualTo(came.get("message"));
    assertThat(sent.get("scope").asText() + " to " + came.get("scope").asText()).isEqualTo("root 1 to detached 2");
  }

  /** HIST-27. */
  @Test
  void writesOfUnknownOutcomeAndSuchAsDidNotHappen() {
    MemoryClient client = posts.client("a");
    MemoryClient replica = posts.client("b");
    posts.loseNextAnswer();
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> client.set("1", "x")).isInstanceOf(UncheckedIOException.class);
      assertThatThrownBy(() -> replica.set("2", "x")).isInstanceOf(ReadOnlyReplicaException.class);
      client.set("3", "x");
      client.delete("3");
      client.delete("none");
      try (Write write = store().begin(Key.of("4"))) {
        write.recordIncomplete("pending", "its version is lost");
      }
    }
    List<JsonNode> writes = lines.of("write");
    assertThat(writes.stream().map(write -> write.get("key").asText())).containsExactly("1", "3", "3", "4");
    assertThat(writes.get(0).get("outcome").asText() + " in " + writes.get(0).get("scope").asText())
        .isEqualTo("unknown in root 1+1");
    assertThat(writes.get(2).get("value").isNull()).isTrue(); // a delete leaves nothing
    assertThat(writes.stream().map(write -> write.has("identifier"))).containsExactly(false, true, true, false);
    assertThat(lines.of("receive").stream().map(line -> line.get("scope").asText())).containsExactly("root 1+1");
  }

  /** HIST-28: the position that a read puts into lineages; the version of what was read. */
  @Test
  void readsOfPositionsCoverOne() {
    Antipode.configure(Antipode.settings().autoMerge(true));
    MemoryClient client = MemoryStore.named("log").client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      client.set("2", "y");
      client.get("1");
    }
    List<JsonNode> writes = lines.of("write");
    JsonNode read = lines.of("read").get(0);
    assertThat(read.get("version")).isEqualTo(writes.get(0).get("identifier"));
    assertThat(read.get("covers")).isEqualTo(writes.get(1).get("identifier"));
  }

  @Test
  void aReadThatFailedIsNone() {
    MemoryClient client = posts.client("b");
    posts.stop("b");
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> client.get("1")).isInstanceOf(UncheckedIOException.class);
    }
    assertThat(lines.kinds()).containsExactly("begin", "end");
  }

  // HIST-24, HIST-31: what is missing is said

  /** HIST-24. */
  @Test
  void aDiskThatFailsIsNoneOfTheApplicationsBusiness() throws IOException {
    Path file = Files.createFile(temporary.resolve("file"));
    Antipode.configure(Settings.defaults().history(file.resolve("below").toString()));
    MemoryClient client = posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      assertThat(client.get("1")).isEqualTo("x");
    }
    Recorder.flush();
    assertThat(file).isRegularFile();
  }

  /** HIST-24. */
  @Test
  void linesThatWereNotWrittenAreAGap() throws IOException {
    MemoryClient client = posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      Recorder.flush();
      Files.move(lines.folder(), temporary.resolve("kept"));
      Files.createFile(lines.folder()); // a file in the folder's place: nothing can be written
      client.set("2", "x");
      Recorder.flush();
      Files.delete(lines.folder());
      client.set("3", "x");
    }
    JsonNode gap = lines.of("gap").get(0);
    assertThat(gap.get("reason").asText() + " " + gap.get("count")).isEqualTo("not written 1");
    assertThat(lines.of("write").stream().map(write -> write.get("key").asText())).containsExactly("3");
  }

  /** HIST-24: lines are never rotated away. */
  @Test
  void aFullFileSaysSo() throws IOException {
    Antipode.configure(Antipode.settings().recordsMaxMib(1));
    MemoryClient client = posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      Recorder.flush();
      Files.writeString(lines.files().get(0), "\n".repeat(5 << 20), StandardOpenOption.APPEND);
      client.set("2", "x");
      Recorder.flush();
      client.set("3", "x");
    }
    Recorder.forget();
    List<String> last = Files.readAllLines(lines.files().get(0));
    assertThat(last.get(last.size() - 1)).contains("\"kind\":\"gap\"").contains("full: ");
    assertThat(last).noneMatch(line -> line.contains("\"end\""));
  }

  /** HIST-24: an error of the recorder is a gap, and none of the application's. */
  @Test
  void anErrorOfTheRecorderIsAGap() {
    posts.client("a");
    try (LineageScope scope = Antipode.scope()) {
      ReadEvent read = Recorder.current().read(scope, store(), scope.held());
      read.returned(new ReadReply(null, List.of(new ReadValue(null, Content.UNKNOWN))), null);
      try (Write write = store().begin(Key.of("1"))) {
        write.noted().changes(List.of(new KeyChange(null)));
        write.record(new Ordered("", 7));
      }
      assertThat(scope.lineage().size()).isEqualTo(1);
    }
    assertThat(lines.reasons())
        .containsExactly("an operation could not be recorded", "an operation could not be recorded");
  }

  /** HIST-31: once a process, whatever the reason is. */
  @Test
  void aStoreWithoutRecordedReadsIsAGap() {
    RegisteredStore rows = Shims.join(StoreOptions.named("rows"), Rows::new);
    MemoryClient off = MemoryStore.named("off").client("a", StoreOptions.named("off").mode(Mode.OFF));
    try (LineageScope scope = Antipode.scope()) {
      for (int each = 0; each < 2; each++) {
        try (Write write = rows.begin(Key.of("1"))) {
          write.abandon();
        }
        off.get("1");
      }
    }
    assertThat(lines.reasons())
        .containsExactly("reads of rows are not recorded (rows)", "reads of off are not recorded (its mode is off)");
    assertThat(lines.of("read")).isEmpty();
  }

  /** HIST-31: its reads would be missing, and nothing would say so. */
  @Test
  void aStoreThatIsOffForAWhileIsAGap() {
    MemoryClient posts = MemoryStore.named("posts").client("a");
    try (LineageScope scope = Antipode.scope()) {
      posts.set("1", "x");
      Antipode.configure(Antipode.settings().mode(Mode.OFF));
      posts.get("1");
      Antipode.configure(Antipode.settings().mode(Mode.ENFORCE));
      posts.get("1");
    }
    assertThat(lines.reasons()).containsExactly("reads of posts are not recorded (its mode is off)");
  }

  private static final class Rows extends Shim {
    @Override
    public String kind() {
      return "rows";
    }

    @Override
    public Capabilities capabilities() {
      return Capabilities.objects();
    }

    @Override
    public List<Visibility> visible(List<WriteId> ids, Server server) {
      return List.of();
    }
  }

  // HIST-30: messages

  /** HIST-30: who records nothing takes the message's name out. */
  @Test
  void whoRecordsNothingTakesTheNameOut() {
    MemoryClient client = posts.client("a");
    String text;
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      text = Messages.outgoing(null);
    }
    assertThat(text).contains("~_.msg.");
    Antipode.configure(Settings.defaults().history(""));
    try (LineageScope message = Antipode.messageScope(text)) {
      assertThat(message.lineage().extensions()).isEmpty();
      assertThat(Messages.outgoing(null)).isEqualTo(message.lineage().serialize());
    }
  }

  /** HIST-30: of somebody who records nothing comes an unknown message. */
  @Test
  void aLineageWithoutANameIsOfAnUnknownMessage() {
    try (LineageScope message = Antipode.messageScope("1~posts..e.5")) {
      assertThat(message.lineage().size()).isEqualTo(1);
    }
    JsonNode receipt = lines.of("receive").get(0);
    assertThat(receipt.get("lineage").asText()).isEqualTo("1~posts..e.5");
    assertThat(receipt.get("message").asText()).startsWith("stranger-");
  }

  /** HIST-33: a lineage that is carried by hand. */
  @Test
  void aLineageByHandIsOfAnUnknownMessage() {
    Lineage lineage = Lineage.deserialize("1~posts..e.5");
    try (LineageScope scope = Antipode.scope(lineage)) {
      Antipode.transfer(lineage);
      Antipode.transfer(Lineage.EMPTY);
      scope.transfer(lineage);
    }
    assertThat(lines.of("receive").stream().map(line -> line.get("lineage").asText()))
        .containsExactly("1~posts..e.5", "1~posts..e.5", "1~posts..e.5");
  }

  /** HIST-30: values never have it. */
  @Test
  void aValueHasNoMessagesName() throws IOException {
    MemoryClient client = MemoryStore.named("log").client("a");
    Antipode.configure(Antipode.settings().autoMerge(true));
    try (LineageScope scope = Antipode.scope()) {
      client.set("1", "x");
      client.set("2", "y");
    }
    try (LineageScope scope = Antipode.scope()) {
      client.get("2");
      assertThat(scope.lineage().extensions()).isEmpty();
    }
    assertThat(lines.of("receive")).isEmpty(); // nor has the value one that names no message
  }

  /** HIST-30: the name is within the budget, and the sending has what is left. */
  @Test
  void theNameIsWithinTheBudget() {
    MemoryClient client = posts.client("a");
    Antipode.configure(Antipode.settings().budgetBytes(120));
    String text;
    try (LineageScope scope = Antipode.scope()) {
      for (int number = 0; number < 10; number++) {
        client.set(Integer.toString(number), "x");
      }
      text = Messages.outgoing(null);
    }
    assertThat(text.length()).isLessThanOrEqualTo(120);
    MessageNames.NamedLineage taken = MessageNames.take(Lineage.deserialize(text));
    assertThat(taken.messages()).hasSize(1);
    assertThat(lines.of("send").get(0).get("lineage").asText()).isEqualTo(taken.lineage().serialize());
  }
}
