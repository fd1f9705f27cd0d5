// The schema `antipode` of a prepared database (`antipode init`): what is asked of it. It is never made here (spec
// SHIM-4).
#ifndef ANTIPODE_POSTGRESQL_SRC_SCHEMA_H_
#define ANTIPODE_POSTGRESQL_SRC_SCHEMA_H_

// An expression: whether the user may call one of our functions. Never an error, also without a right to look.
#define ANTIPODE_MAY_CALL(function)                                                                          \
  "coalesce((SELECT has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE')"       \
  " FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"                                      \
  " WHERE n.nspname = 'antipode' AND p.proname = '" function "'), false)"

// Whether the user may read the table of epochs.
#define ANTIPODE_MAY_READ_EPOCHS                                                                             \
  "coalesce((SELECT has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')"           \
  " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"                                     \
  " WHERE n.nspname = 'antipode' AND c.relname = 'epochs'), false)"

// When the server was started: a number, for the text of a time depends on the session's zone.
#define ANTIPODE_STARTED "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text"

#endif  // ANTIPODE_POSTGRESQL_SRC_SCHEMA_H_
