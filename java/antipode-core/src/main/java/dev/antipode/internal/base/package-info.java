/**
 * Settings, the log, clocks and small tools of the whole core. Begin with
 * {@link dev.antipode.internal.base.ProcessSettings}.
 */
package dev.antipode.internal.base;
