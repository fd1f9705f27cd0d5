"""Antipode's shim for MariaDB and MySQL: connections whose writes join the request's lineage.

posts = antipode_mysql.wrap(pymysql.connect(host="a"), store="blog-posts", fresh_server_ids=True)
with posts.cursor() as cursor:
    cursor.execute("INSERT INTO posts VALUES (42, %s)", body)
posts.commit()                                                                # its position joins the scope

antipode_mysql.register("blog-posts", replicas=["mysql://app@b1"], fresh_server_ids=True)     # where readers are
antipode.barrier(timeout=1.0)                                                 # waits for them
"""

from antipode.shim import skip_packages

from antipode_mysql.shim import MySQLShim
from antipode_mysql.wrapping import register, wrap

skip_packages("antipode_mysql", "pymysql", "mysql", "sqlalchemy")

__version__ = "0.1.0"

__all__ = ["MySQLShim", "register", "wrap"]
