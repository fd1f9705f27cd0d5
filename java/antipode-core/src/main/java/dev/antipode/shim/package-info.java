/**
 * The contract of a shim: all that a datastore's package may use beside the API. Begin with {@link dev.antipode.shim.Shim},
 * which answers what a server has, {@link dev.antipode.shim.Shims}, where a store joins, and {@link dev.antipode.shim.Write} and
 * {@link dev.antipode.shim.Read}, by which wrapped clients tell what they do.
 */
package dev.antipode.shim;
