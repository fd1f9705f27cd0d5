/**
 * The text of a lineage: parsing, joining, the budget. Begin with {@link dev.antipode.internal.model.Section} and
 * {@link dev.antipode.internal.model.WireForm}.
 */
package dev.antipode.internal.model;
