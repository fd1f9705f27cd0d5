// The conformance kit on Redis, without exceptions (SHIM-18, SHIM-33).
#include "antipode/testing/conformance.h"

#include "redis_under_test.h"

namespace antipode::redis {
namespace {

std::unique_ptr<testing::StoreUnderTest> MakeRedis() { return std::make_unique<RedisUnderTest>(); }

ANTIPODE_SHIM_CONFORMANCE(Redis, MakeRedis);

}  // namespace
}  // namespace antipode::redis
