#!/bin/sh
# Versioned buckets in both regions; A sends B what is written, over the link.
set -eu
mc alias set a http://s3-a:9000 antipode antipode-lab
mc alias set b1 http://toxiproxy:21008 antipode antipode-lab
for name in a b1; do
  mc mb --ignore-existing "$name/posts"
  mc version enable "$name/posts"
done
if [ -z "$(mc replicate ls a/posts 2>/dev/null)" ]; then
  mc replicate add a/posts --remote-bucket http://antipode:antipode-lab@toxiproxy:21008/posts \
    --replicate "delete,delete-marker,existing-objects"
fi
