/**
 * Recorded histories (chapter HIST of the specification). Begin with
 * {@link dev.antipode.internal.diagnostics.history.HistoryObserver}.
 */
package dev.antipode.internal.diagnostics.history;
