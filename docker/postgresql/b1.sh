#!/bin/sh
# The standby: a copy of the primary, taken over the link once, which follows it from there on.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  install -d -m 0700 "$PGDATA"
  until pg_basebackup -h toxiproxy -p 21004 -U postgres -D "$PGDATA" -R -X stream -c fast; do
    rm -rf "${PGDATA:?}"/*
    sleep 1
  done
fi
exec postgres "$@"
