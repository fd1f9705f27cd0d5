#include "binding.h"

#include <utility>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "probe.h"

namespace antipode::redis {
namespace {

// After a refusal the position is asked for again so much later: the right may have been granted.
constexpr auto kDenied = std::chrono::seconds(10);

}  // namespace

Binding::Binding(const redisContext& context, std::shared_ptr<Store> joined, std::shared_ptr<Lead> own, Target reached,
                 const Options& given)
    : store(std::move(joined)),
      server(own->server()),
      target(std::move(reached)),
      options(given),
      resting(options),
      marker(shim().MarkerAt(store->name(), target)),
      place_(Target::Reached(context)),
      peer_(Target::Peer(context)),
      lead_(std::move(own)) {
  marker->AddUser();
}

Binding::~Binding() { marker->RemoveUser(); }

void Binding::Reach(const redisContext& context) {
  const bool is_there = LeadsThere(context);
  if (is_there && lead_->Counts(context.fd)) return;
  if (!is_there) {
    place_ = Target::Reached(context);
    peer_ = Target::Peer(context);
    target.LeadTo(place_);
  }
  lead_ = store->Reach(lead_, options, std::any(target), target.Address(), context.fd);
  server = lead_->server();
  marker->RemoveUser();
  marker = shim().MarkerAt(store->name(), target);
  marker->AddUser();
}

bool Binding::LeadsThere(const redisContext& context) const {
  if (place_.IsNamedBy(context)) return true;
  const auto peer = peer_ ? Target::Peer(context) : std::nullopt;
  return peer && peer->Address() == peer_->Address();  // its words count when it is made anew (BAR-68)
}

std::chrono::nanoseconds Binding::Timeout() const { return TimeoutOf(name(), options.timeout); }

std::string Binding::Unfit() const {
  const auto facts = marker->facts();
  return facts != nullptr && facts->cluster ? target.Address() + " " + std::string(kCluster) : std::string();
}

bool Binding::MayAsk() const {
  return why_denied.empty() || std::chrono::steady_clock::now() > denied_until_;
}

void Binding::Denied(const std::string& words) {
  denied_until_ = std::chrono::steady_clock::now() + kDenied;
  why_denied = words;
  logs::Warn("AP506", "rights " + name(),
             "writes to " + name() + " are recorded as incomplete: its user may not ask where they are (" + words +
                 "). " + Grant(shim().marks_key()));
}

}  // namespace antipode::redis
