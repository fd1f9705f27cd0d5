/**
 * Who is believed, and who may see a lineage. Begin with {@link dev.antipode.internal.trust.Judgement}.
 */
package dev.antipode.internal.trust;
