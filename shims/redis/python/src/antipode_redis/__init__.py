"""Antipode's Redis shim: a redis-py client whose writes join the request's lineage, and barriers for its replicas.

posts = antipode_redis.wrap(redis.Redis("a.redis"), store="blog-posts")        # still a redis.Redis
posts.set("post:42", body)                                                     # recorded in the scope

antipode_redis.register("blog-posts", replicas=["redis://b1", "redis://b2"])   # where readers are
antipode.barrier(timeout=1.0)                                                  # waits for both
"""

from antipode.shim import skip_packages

from antipode_redis.marks import Mark
from antipode_redis.shim import RedisShim
from antipode_redis.wrapping import register, wrap

skip_packages("antipode_redis", "redis")

__version__ = "0.1.0"

__all__ = ["Mark", "RedisShim", "register", "wrap"]
