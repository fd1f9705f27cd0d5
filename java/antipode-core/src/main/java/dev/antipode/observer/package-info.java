/**
 * The observer port: what the core tells whoever listens. Begin with {@link dev.antipode.observer.Observer}; metrics, dry-run
 * and recorded histories are observers.
 */
package dev.antipode.observer;
