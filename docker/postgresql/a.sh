#!/bin/sh
# The primary: the application's role and database, and who may replicate it.
set -eu
echo "host replication all all trust" >>"$PGDATA/pg_hba.conf"
psql -v ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
CREATE ROLE app LOGIN;
CREATE DATABASE app OWNER app;
SQL
