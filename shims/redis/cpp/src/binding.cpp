#include "binding.h"

#include <sys/stat.h>

#include <utility>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "probe.h"

namespace antipode::redis {
namespace {

// After a refusal the position is asked for again so much later: the right may have been granted.
constexpr auto kDenied = std::chrono::seconds(10);

// The number of a connection's socket, which no other one has; 0 where there is none.
ino_t SocketOf(const redisContext& context) {
  struct stat facts{};
  return fstat(context.fd, &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace

Binding::Binding(const redisContext& context, std::shared_ptr<Store> joined, std::shared_ptr<Lead> own, Target reached,
                 const Options& given)
    : store(std::move(joined)),
      server(own->server()),
      target(std::move(reached)),
      options(given),
      resting(options),
      marker(shim().MarkerAt(store->name(), target)),
      place_(Target::ReachedServer(context)),
      socket_(SocketOf(context)),
      lead_(std::move(own)) {
  marker->AddUser();
}

Binding::~Binding() { marker->RemoveUser(); }

void Binding::Reach(const redisContext& context) {
  bool is_there = true;
  const ino_t socket = SocketOf(context);
  if (socket == 0 || socket != socket_) {  // else its words count when it is made anew (BAR-68)
    const Target place = Target::ReachedServer(context);
    is_there = place.Address() == place_.Address();
    place_ = place;
    socket_ = socket;
  }
  if (is_there && lead_->Counts(context.fd)) return;
  if (!is_there) target.LeadTo(place_);
  lead_ = store->Reach(lead_, options, std::any(target), target.Address(), context.fd);
  server = lead_->server();
  marker->RemoveUser();
  marker = shim().MarkerAt(store->name(), target);
  marker->AddUser();
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
