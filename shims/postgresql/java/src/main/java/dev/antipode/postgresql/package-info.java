/**
 * PostgreSQL: {@link dev.antipode.postgresql.AntipodePostgres#wrap} records what a DataSource writes; barriers wait until
 * hot standbys have replayed it. The page of the store is {@code shims/postgresql/README.md}.
 */
package dev.antipode.postgresql;

