#include "antipode/shim/shim.h"

#include "antipode/shim/server.h"

namespace antipode {

std::string_view ToString(Versions versions) noexcept {
  switch (versions) {
    case Versions::kPosition:
      return "position";
    case Versions::kObject:
      return "object";
    case Versions::kOpaque:
      return "opaque";
  }
  return "opaque";
}

Result<std::unique_ptr<Watch>> Shim::OpenWatch(Server& /*server*/, std::function<void()> /*on_change*/) {
  return std::unique_ptr<Watch>();
}

Answers Shim::Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds /*timeout*/) {
  return Visible(ids, server);
}

void Shim::Close(Server& server) noexcept { server.session.reset(); }

std::any Shim::Renew(const Server& /*server*/) { return {}; }

std::string Shim::Address(const std::any& target) const {
  const auto* url = std::any_cast<std::string>(&target);
  return url != nullptr ? *url : std::string("client");
}

}  // namespace antipode
