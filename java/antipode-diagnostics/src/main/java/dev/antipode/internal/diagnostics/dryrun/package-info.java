/**
 * Dry-run: records of what barriers would have waited for, and of findings (chapter REC of the specification). Begin with
 * {@link dev.antipode.internal.diagnostics.dryrun.DryRun}.
 */
package dev.antipode.internal.diagnostics.dryrun;
