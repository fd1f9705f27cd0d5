package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.OnPending;
import dev.antipode.PendingWriteException;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.lab.Lab;
import dev.antipode.lab.Repository;
import dev.antipode.shim.PendingWrite;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.context.Scope;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.domain.EntityScan;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration;
import org.springframework.boot.autoconfigure.transaction.TransactionAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.orm.jpa.SharedEntityManagerCreator;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What JPA has changed and not flushed is pending: no statement has left yet (SCOPE-27). */
@ExtendWith(AntipodeIsolated.class)
class JpaTest {
  private static Lab lab;

  private int number;

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.of("postgresql").replicas(1).up();
    String url = "postgresql://postgres@127.0.0.1:" + lab.server("postgresql", "a").port() + "/app";
    String command = Repository.root().resolve(".venv/bin/antipode").toString();
    Process init = new ProcessBuilder(command, "init", "notes", "--at", url, "--user", "app", "--run", "--yes")
        .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    init.getOutputStream().close();
    assertThat(init.waitFor(300, TimeUnit.SECONDS)).isTrue();
    assertThat(init.exitValue()).isZero();
  }

  @AfterAll
  static void stop() {
    lab.close();
  }

  /** A row. */
  @Entity(name = "note")
  static class Note {
    @Id
    private String id;
    private String text;

    /** For JPA. */
    protected Note() {}

    Note(String id) {
      this.id = id;
      this.text = "old";
    }
  }

  /** A part of a row. */
  @Embeddable
  static class Place {
    private String town = "old";
  }

  /** A row, and rows beside it. */
  @Entity(name = "trip")
  static class Trip {
    @Id
    private String id;
    @Embedded
    private Place from = new Place();
    @ElementCollection
    private List<Place> over = new ArrayList<>(List.of(new Place()));
    @ElementCollection
    private Map<String, Place> to = new HashMap<>(Map.of("last", new Place()));

    /** For JPA. */
    protected Trip() {}

    Trip(String id) {
      this.id = id;
    }

    Place place(String which) {
      return switch (which) {
        case "from" -> from;
        case "over" -> over.get(0);
        default -> to.get("last");
      };
    }
  }

  @Configuration(proxyBeanMethods = false)
  @EntityScan(basePackageClasses = JpaTest.class)
  static class Application {}

  /** An application with transactions. */
  private record Notes(ApplicationContext context, EntityManager manager) {
    void inTransaction(boolean isReadOnly, Consumer<EntityManager> work) {
      TransactionTemplate transaction = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
      transaction.setReadOnly(isReadOnly);
      transaction.executeWithoutResult(status -> work.accept(manager));
    }

    Note note(String id) {
      return manager.find(Note.class, id);
    }
  }

  private void run(Consumer<Notes> test) {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(
            AntipodeAutoConfiguration.class,
            DataSourceAutoConfiguration.class,
            HibernateJpaAutoConfiguration.class,
            TransactionAutoConfiguration.class))
        .withUserConfiguration(Application.class)
        .withPropertyValues(
            "spring.datasource.url=jdbc:postgresql://127.0.0.1:" + lab.server("postgresql", "a").port() + "/app",
            "spring.datasource.username=app",
            "spring.jpa.hibernate.ddl-auto=update",
            "antipode.stores.notes.bean=dataSource")
        .run(context -> {
          assertThat(context).hasNotFailed();
          EntityManagerFactory factory = context.getBean(EntityManagerFactory.class);
          test.accept(new Notes(context, SharedEntityManagerCreator.createSharedEntityManager(factory)));
        });
  }

  private String next() {
    return "n" + number++ + "-" + System.nanoTime();
  }

  private static Lineage leaving() {
    return Antipode.deserialize(Antipode.serialize());
  }

  private static void assertPending(LineageScope scope) {
    assertThat(scope.lineage().incomplete()).containsExactly("notes");
    assertThat(leaving().incomplete()).containsExactly("notes");
    assertThat(scope.pendingStores()).containsExactly("notes");
  }

  private static void assertWritten(LineageScope scope) {
    assertThat(scope.lineage().stores()).containsExactly("notes");
    assertThat(scope.lineage().isComplete()).isTrue();
    assertThat(scope.pending()).isEmpty();
  }

  @Test
  void whatIsPersistedIsPendingUntilItsCommit_SCOPE_27() {
    run(notes -> {
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          manager.persist(new Note(next()));
          assertPending(scope);
        });
        assertWritten(scope);
      }
    });
  }

  @Test
  void whatIsChangedOrRemovedIsPendingLikewise_SCOPE_27() {
    run(notes -> {
      String id = next();
      notes.inTransaction(false, manager -> manager.persist(new Note(id)));
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          Note note = notes.note(id);
          assertThat(leaving().hasContent()).as("SCOPE-15: until now it only read").isFalse();
          note.text = "new";
          assertPending(scope);
        });
        assertWritten(scope);
      }
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          manager.remove(notes.note(id));
          assertPending(scope);
        });
        assertWritten(scope);
      }
    });
  }

  /** Nobody is told of what changes inside an embeddable. */
  @ParameterizedTest
  @ValueSource(strings = {"from", "over", "to"})
  void whatIsChangedInPlaceIsPendingLikewise_SCOPE_27(String which) {
    run(notes -> {
      String id = next();
      notes.inTransaction(false, manager -> manager.persist(new Trip(id)));
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          Place place = manager.find(Trip.class, id).place(which);
          assertThat(leaving().hasContent()).as("SCOPE-15: until now it only read").isFalse();
          place.town = "new";
          assertPending(scope);
        });
        assertWritten(scope);
      }
    });
  }

  /** Who looked at its lineage knows of the write only where its statement was sent there. */
  @ParameterizedTest
  @ValueSource(strings = {"commit", "query", "flushed here"})
  void whatAnotherScopeFlushesIsUnknown_SCOPE_27_SCOPE_17(String way) {
    run(notes -> {
      LineageScope looked = LineageScope.create(Lineage.EMPTY, ScopeKind.ROOT);
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          try (Scope current = looked.makeCurrent()) {
            manager.persist(new Note(next()));
            assertPending(looked);
            if (way.equals("flushed here")) {
              manager.flush();
            }
            assertThat(current).isNotNull();
          }
          if (way.equals("query")) {
            manager.createQuery("SELECT count(n) FROM note n", Long.class).getSingleResult();
          }
        });
        if (way.equals("flushed here")) {
          assertWritten(looked);
        } else {
          assertWritten(scope);
          assertThat(looked.lineage().incomplete()).containsExactly("notes");
          assertThat(looked.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
        }
      }
    });
  }

  @Test
  void nothingIsPendingOfWhatNeverIsWritten_SCOPE_27() {
    run(notes -> {
      String id = next();
      notes.inTransaction(false, manager -> manager.persist(new Note(id)));
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(true, manager -> {
          notes.note(id).text = "never"; // it is not flushed
          assertThat(leaving().hasContent()).isFalse();
        });
        assertThatThrownBy(() -> notes.inTransaction(false, manager -> {
          notes.note(id).text = "never";
          assertPending(scope);
          throw new IllegalStateException("no");
        })).hasMessage("no");
        assertThat(scope.lineage().hasContent()).isFalse();
        assertThat(scope.pending()).isEmpty();
      }
    });
  }

  /** The first barrier leaves a proof, by which the second could pass at once. */
  @Test
  void theScopesOwnBarrierKnowsWhatIsNotFlushed_BAR_56_SCOPE_27() {
    BarrierOptions wait = BarrierOptions.defaults().timeout(Duration.ofSeconds(60));
    run(notes -> {
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> manager.persist(new Note(next())));
        notes.inTransaction(false, manager -> {
          assertThat(Antipode.barrier(wait).complete()).isTrue();
          manager.persist(new Note(next()));
          assertThat(Antipode.barrier(wait).complete()).isFalse();
        });
        assertThat(Antipode.barrier(wait).complete()).isTrue();
      }
    });
  }

  @Test
  void whatIsSentBehindTheCommitIsComplete_SCOPE_27() {
    run(notes -> {
      try (LineageScope scope = Antipode.scope()) {
        List<Lineage> sent = new ArrayList<>();
        notes.inTransaction(false, manager -> {
          TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
            @Override
            public void afterCommit() {
              sent.add(Lineage.deserialize(Antipode.serialize()));
            }
          });
          manager.persist(new Note(next()));
          assertThat(Lineage.deserialize(Antipode.serialize()).incomplete()).isNotEmpty();
        });
        assertThat(sent).hasSize(1).allMatch(each -> each.incomplete().isEmpty() && each.iterator().hasNext());
      }
    });
  }

  @Test
  void whoPublishesBeforeTheFlushIsToldSo_SCOPE_18_SCOPE_27() {
    run(notes -> {
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      try (LineageScope scope = Antipode.scope()) {
        notes.inTransaction(false, manager -> {
          manager.persist(new Note(next()));
          assertThatThrownBy(Antipode::serialize).isInstanceOf(PendingWriteException.class);
        });
      }
    });
  }
}
