package dev.antipode.spring;

import dev.antipode.LineageScope;
import dev.antipode.postgresql.AntipodePostgres;
import dev.antipode.shim.Logs;
import dev.antipode.shim.PendingWrite;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.orm.jpa.EntityManagerFactoryInfo;
import org.springframework.orm.jpa.EntityManagerHolder;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/**
 * What a transaction's entity manager has changed and not flushed counts as pending from the first change: until then no
 * statement has left (SCOPE-27). It is asked when a lineage is handed out by the transaction's own thread.
 */
final class JpaChanges implements Consumer<LineageScope>, DisposableBean {
  private static final boolean HAS_HIBERNATE =
      ClassUtils.isPresent("org.hibernate.engine.spi.SessionImplementor", JpaChanges.class.getClassLoader());

  private final Map<EntityManagerFactory, Optional<String>> stores = Collections.synchronizedMap(new WeakHashMap<>());

  JpaChanges() {
    PendingWrite.addSource(this);
  }

  @Override
  public void destroy() {
    PendingWrite.removeSource(this);
  }

  @Override
  public void accept(LineageScope scope) {
    if (!TransactionSynchronizationManager.isActualTransactionActive()
        || !TransactionSynchronizationManager.isSynchronizationActive()
        || TransactionSynchronizationManager.isCurrentTransactionReadOnly()) {
      return;
    }
    TransactionSynchronizationManager.getResourceMap().forEach((key, resource) -> {
      if (key instanceof EntityManagerFactory factory && resource instanceof EntityManagerHolder holder) {
        stores.computeIfAbsent(factory, JpaChanges::storeOf)
            .filter(store -> isRecorded(store) && !isPending(scope, store) && mayWrite(holder.getEntityManager()))
            .ifPresent(store -> TransactionSynchronizationManager.registerSynchronization(
                Pending.begin(scope, store, holder.getEntityManager())));
      }
    });
  }

  /** The store that a factory's DataSource is a client of. */
  private static Optional<String> storeOf(EntityManagerFactory factory) {
    try {
      DataSource source = factory instanceof EntityManagerFactoryInfo info ? info.getDataSource() : null;
      return source == null ? Optional.empty() : AntipodePostgres.storeOf(source);
    } catch (RuntimeException | LinkageError error) { // nothing of that is for the application's call to meet
      Logs.info("AP517", "jpa", "the DataSource of an entity manager factory cannot be seen (" + error + ")");
      return Optional.empty();
    }
  }

  private static boolean isRecorded(String store) {
    RegisteredStore registered = Shims.find(store);
    return registered != null && registered.records();
  }

  private static boolean isPending(LineageScope scope, String store) {
    return TransactionSynchronizationManager.getSynchronizations().stream().anyMatch(each ->
        each instanceof Pending pending && pending.scope == scope && pending.write.store().equals(store));
  }

  /** Unsure means that it may. */
  private static boolean mayWrite(EntityManager manager) {
    if (!HAS_HIBERNATE) {
      return true;
    }
    try {
      return HibernateChanges.areUnflushed(manager);
    } catch (RuntimeException | LinkageError error) {
      Logs.info(
          "AP517",
          "jpa",
          "whether an entity manager has unflushed changes cannot be seen (" + error + "): a lineage that leaves its "
              + "transaction is marked incomplete");
      return true;
    }
  }

  /**
   * The write that a transaction is about to make; at its end the flushed statements have been recorded, in the scope in which
   * they were sent. Where that is another one, nobody knows what became of this scope's changes.
   */
  private record Pending(LineageScope scope, PendingWrite write, EntityManager manager) implements TransactionSynchronization {
    static Pending begin(LineageScope scope, String store, EntityManager manager) {
      PendingWrite write = new PendingWrite(store);
      scope.begin(write);
      return new Pending(scope, write, manager);
    }

    /** What is not flushed yet is flushed now, in the scope that is current. */
    @Override
    public void beforeCommit(boolean readOnly) {
      boolean isRecordedHere = mayWrite(manager) ? LineageScope.current() == scope : hasStatements();
      if (!isRecordedHere) {
        write.outcomeUnknown();
      }
    }

    /** A statement of the transaction was sent in this scope. */
    private boolean hasStatements() {
      return scope.pending().stream().anyMatch(each -> each != write && each.store().equals(write.store()));
    }

    /** Before what the application does behind the commit, and behind Spring's own. */
    @Override
    public int getOrder() {
      return DataSourceUtils.CONNECTION_SYNCHRONIZATION_ORDER + 1;
    }

    @Override
    public void afterCommit() {
      if (!write.isUnknown()) {
        scope.end(write);
      }
    }

    @Override
    public void afterCompletion(int status) {
      if (status == STATUS_UNKNOWN) {
        write.outcomeUnknown();
      } else if (status == STATUS_ROLLED_BACK || !write.isUnknown()) {
        scope.end(write);
      }
    }
  }
}
