/**
 * Redis for Antipode: {@link dev.antipode.redis.AntipodeRedis#wrap} returns a Jedis client whose writes join the current
 * scope, and whose reads can wait. The store's page: {@code shims/redis/README.md}.
 */
package dev.antipode.redis;

