package dev.antipode.benchmarks;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Lineage;
import dev.antipode.WriteId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What each service does with a lineage, after 20 writes to so many stores that give positions: deserialize, append one
 * write, serialize; beside it what a prototype carries, {@code [[store, key, version], …]} as JSON, each write once more.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
@State(Scope.Thread)
public class HopBenchmark {
  private static final int WRITES = 20;
  private static final TypeReference<List<List<String>>> LIST = new TypeReference<>() {};

  /** How many stores were written to. */
  @Param({"1", "2", "3", "4", "5"})
  public int stores;

  private final ObjectMapper json = new ObjectMapper();
  private String text;
  private String naive;
  private String[] names;
  private String[] epochs;
  private int turn;

  /** The lineage and the list that come in. */
  @Setup
  public void fill() throws JsonProcessingException {
    names = new String[stores];
    epochs = new String[stores];
    for (int number = 0; number < stores; number++) {
      names[number] = "blog-store-" + number;
      epochs[number] = "8371ab90c2d4e60" + number;
    }
    Lineage lineage = Lineage.EMPTY;
    List<List<String>> list = new ArrayList<>();
    for (int number = 0; number < WRITES; number++) {
      WriteId id = write(number);
      lineage = lineage.including(id);
      list.add(List.of(id.store(), "post:" + number, id.version().toString()));
    }
    text = lineage.serialize();
    naive = json.writeValueAsString(list);
  }

  private WriteId write(int number) {
    return WriteId.position(names[number % stores], epochs[number % stores], 1042 + number);
  }

  /** One hop of a lineage. */
  @Benchmark
  public String hop() {
    return Lineage.deserialize(text).including(write(WRITES + (turn++ & 1023))).serialize();
  }

  /** One hop of a naive list. */
  @Benchmark
  public String naiveJson() throws JsonProcessingException {
    List<List<String>> list = json.readValue(naive, LIST);
    WriteId id = write(WRITES + (turn++ & 1023));
    list.add(List.of(id.store(), "post:21", id.version().toString()));
    return json.writeValueAsString(list);
  }
}
