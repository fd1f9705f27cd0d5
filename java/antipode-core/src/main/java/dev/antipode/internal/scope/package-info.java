/**
 * What a scope keeps: pending writes, open streams, removals, and work that carries it. Begin with
 * {@link dev.antipode.internal.scope.ContextTransfer} and {@link dev.antipode.internal.scope.ScopeLog}.
 */
package dev.antipode.internal.scope;
