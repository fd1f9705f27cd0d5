/**
 * The barrier: plan, wait, ask, prove, judge. Begin with {@link dev.antipode.internal.engine.Barriers} and
 * {@link dev.antipode.internal.engine.ServerEngine}.
 */
package dev.antipode.internal.engine;
