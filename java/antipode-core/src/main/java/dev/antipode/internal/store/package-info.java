/**
 * The stores that a process has registered. Begin with {@link dev.antipode.internal.store.Registry}.
 */
package dev.antipode.internal.store;
