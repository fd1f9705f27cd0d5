#include <any>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "antipode/logs.h"
#include "antipode/redis.h"
#include "inside.h"
#include "probe.h"
#include "resting.h"
#include "session.h"
#include "shim.h"

namespace antipode::redis {
namespace {

constexpr auto kProbe = std::chrono::seconds(1);

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
};

Error Refuse(MessageCode code, const std::string& words) { return {ErrorCode::kConfiguration, code, words}; }

// The server that the connection reaches (BAR-68), with what the options' URL says of it; that one where the connection
// does not say.
Result<Target> TargetOf(const redisContext& context, const Options& options) {
  const Target place = Target::ReachedServer(context);
  const bool is_known = !place.host.empty() || !place.path.empty();
  if (options.url.empty() && !is_known) {
    return Refuse(
        "AP501",
        "Wrap(): the connection does not say which server it reaches; give it: Options(…).Url(\"redis://host:port\")");
  }
  if (options.url.empty()) return place;
  auto target = Target::Parse(options.url);
  if (target.ok() && is_known) target->LeadTo(place);
  return target;
}

Result<std::shared_ptr<Store>> Join(const Options& options) {
  if (auto checked = LineagePlacement::Check(options); !checked.ok()) return checked.error();
  for (const std::any& replica : options.replicas.value_or(Targets())) {
    if (auto target = Target::Of(replica); !target.ok()) return target.error();
  }
  auto joined = JoinStore(RedisType(), options);
  if (!joined.ok()) return joined;
  auto used = static_cast<RedisShim&>((*joined)->shim()).UseMarksKey(options.marks_key);
  if (!used.ok()) return used.error();
  return joined;
}

// Asks the server what it allows; what cannot be reached now is asked when it can.
Result<Facts> Ask(const Target& target, const Options& options) {
  auto session = Session::Open(target, kProbe);
  if (session.ok()) {
    auto facts = Probe(**session, options.name, options.marks_key);
    if (!facts.ok()) return Facts();  // LOADING, a restart just now: asked again by the marker
    return *facts;
  }
  const Failure& failure = session.failure();
  const std::string_view code = failure.Code();
  if (failure.by_server && (code == "NOAUTH" || code == "WRONGPASS")) {
    return Refuse("AP204",
                  target.Address() + " refuses Antipode's own connection (" + failure.words +
                      "): give the credentials, Options(…).Url(\"redis://user:password@host:port/db\")");
  }
  logs::Info("AP507", "probe " + options.name + " " + target.Address(),
             options.name + ": " + target.Address() + " does not answer yet (" + failure.words +
                 "); its rights are asked when it does");
  return Facts();
}

}  // namespace

Result<Connection> Wrap(redisContext* context, const Options& options) {
  std::unique_ptr<redisContext, Free> owned(context);
  if (context == nullptr) return Refuse("AP501", "Wrap(): there is no connection: hiredis gave a null pointer");
  if (context->err != 0) {
    return Refuse("AP501", std::string("the connection to wrap is not open: ") + context->errstr);
  }
  if ((context->flags & REDIS_BLOCK) == 0) {
    return Refuse("AP501", "Wrap() takes a blocking connection: redisConnect, not redisConnectNonBlock");
  }
  auto target = TargetOf(*context, options);
  if (!target.ok()) return target.error();
  auto facts = Ask(*target, options);
  if (!facts.ok()) return facts.error();
  if (facts->cluster && options.on_unfit.value_or(OnUnfit::kRaise) == OnUnfit::kRaise) {
    return Error{ErrorCode::kUnfitStore, "AP208",
                 target->Address() + " " + std::string(kCluster) +
                     ". WhenUnfit(OnUnfit::kUnproven) lets the service start"};
  }
  auto joined = Join(options);
  if (!joined.ok()) return joined.error();
  std::optional<std::string> keys = options.envelope_keys;
  if (keys && keys->empty()) keys.reset();
  if (auto agreed = (*joined)->AgreeOnEnvelopes(keys); !agreed.ok()) return agreed.error();
  auto lead = (*joined)->NameServer(options, std::any(*target), target->Address());
  auto inside = std::make_unique<Connection::Inside>(owned.release(), *joined, std::move(lead), *target, options);
  if (facts->reached) static_cast<RedisShim&>((*joined)->shim()).MarkerAt(options.name, *target)->set_facts(*facts);
  return Connection(std::move(inside));
}

Result<void> Register(const Options& options) {
  auto joined = Join(options);
  if (!joined.ok()) return joined.error();
  return {};
}

}  // namespace antipode::redis
