package dev.antipode.spring;

import jakarta.persistence.EntityManager;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.hibernate.FlushMode;
import org.hibernate.collection.spi.PersistentCollection;
import org.hibernate.engine.spi.CollectionEntry;
import org.hibernate.engine.spi.EntityEntry;
import org.hibernate.engine.spi.PersistenceContext;
import org.hibernate.engine.spi.SessionImplementor;
import org.hibernate.engine.spi.Status;
import org.hibernate.persister.collection.CollectionPersister;
import org.hibernate.persister.entity.EntityPersister;

/** What a session of Hibernate's would write, seen without its own dirty check, which calls the entities' listeners. */
final class HibernateChanges {
  private HibernateChanges() {}

  /** Return whether a flush would write. */
  static boolean areUnflushed(EntityManager manager) {
    SessionImplementor session = manager.unwrap(SessionImplementor.class);
    PersistenceContext context = session.getPersistenceContextInternal();
    if (session.getHibernateFlushMode() == FlushMode.MANUAL) {
      return false;
    }
    return context.isFlushing() || session.getActionQueue().hasAnyQueuedActions()
        || areEntitiesChanged(session, context) || areCollectionsChanged(context);
  }

  private static boolean areEntitiesChanged(SessionImplementor session, PersistenceContext context) {
    for (Map.Entry<Object, EntityEntry> each : context.reentrantSafeEntityEntries()) {
      Object entity = each.getKey();
      EntityEntry entry = each.getValue();
      EntityPersister persister = entry.getPersister();
      Object[] loaded = entry.getLoadedState();
      boolean isWritten = entry.getStatus() == Status.MANAGED && persister.isMutable() && loaded != null;
      if (isWritten && persister.findDirty(persister.getValues(entity), loaded, entity, session) != null) {
        return true;
      }
    }
    return false;
  }

  private static boolean areCollectionsChanged(PersistenceContext context) {
    AtomicBoolean found = new AtomicBoolean();
    context.forEachCollectionEntry((collection, entry) -> found.compareAndSet(false, isChanged(collection, entry)), true);
    return found.get();
  }

  /** Elements that are changed in place, such as embeddables, are seen by a flush alone: it compares them as here. */
  @SuppressWarnings("removal") // where it is gone, the mapper "may have" changed something: a LinkageError
  private static boolean isChanged(PersistentCollection<?> collection, CollectionEntry entry) {
    if (collection.isDirty() || collection.hasQueuedOperations()) {
      return true;
    }
    CollectionPersister persister = entry.getLoadedPersister();
    return persister != null && persister.isMutable() && collection.wasInitialized()
        && (collection.isDirectlyAccessible() || persister.getElementType().isMutable())
        && !collection.equalsSnapshot(persister);
  }
}
