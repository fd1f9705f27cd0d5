"""Antipode's PostgreSQL shim: psycopg connections whose commits join the request's lineage, and barriers for standbys.

posts = antipode_postgresql.wrap(psycopg.connect("host=a"), store="posts")         # still a psycopg.Connection
with posts.transaction():
    posts.execute("INSERT INTO posts VALUES (%s, %s)", (42, body))                 # recorded when COMMIT has returned

antipode_postgresql.register("posts", replicas=["postgresql://b1/blog", "postgresql://b2/blog"])
antipode.barrier(timeout=1.0)                                                      # waits for both
"""

from antipode.shim import skip_packages

from antipode_postgresql.shim import PostgresqlShim
from antipode_postgresql.wrapping import register, wrap

skip_packages("antipode_postgresql", "psycopg", "psycopg_pool", "sqlalchemy")

__version__ = "0.1.0"

__all__ = ["PostgresqlShim", "register", "wrap"]
