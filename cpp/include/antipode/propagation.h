/// \file
/// How a lineage travels with requests and comes back with responses (paper 6.2, spec PROP).
///
/// The four functions `ExtractRequest`, `InjectRequest`, `ExtractResponse` and `InjectResponse` serve any transport.
/// None fails for what a header holds.
#ifndef ANTIPODE_PROPAGATION_H_
#define ANTIPODE_PROPAGATION_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/carrier.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/result.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {

/// In which formats the application propagates its own baggage: W3C, and that of Jaeger's clients (PROP-7 to PROP-9).
struct Formats {
  bool baggage = true;
  bool jaeger = false;
};

/// Says what the application's own propagators are; baggage until somebody does (PROP-9). A request that holds
/// `uber-trace-id` gets Jaeger's carrier in any case (PROP-7).
void SetPropagationFormats(Formats formats);

/// What headers brought: lineage texts, not yet judged or parsed, and the forwarding headers beside them.
///
/// An empty text is a carrier that was there and held nothing: something was lost (WIRE-30).
struct InboundHeaders {
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, std::string>> forwarded;
};

/// Finds the lineage texts in raw header lines, each once, and the forwarding headers (PROP-4, PROP-5).
InboundHeaders ReadCarrier(const Carrier& headers);

/// One request that came in: its scope, and what its response may carry back.
class Inbound {
 public:
  /// `peer` is the address of the socket's peer; an empty one (a Unix socket) counts as loopback. `edge` is a
  /// middleware's own word, which can only add to the setting.
  static ScopePtr Open(const InboundHeaders& came, std::string_view peer, std::optional<bool> edge = std::nullopt,
                       Site site = Site());

  /// The header's value for what the scope added since it was last asked; nothing where none is to be sent.
  ///
  /// From now on what is written comes late, and is counted (PROP-13, PROP-16). `is_public`: shared caches may keep the
  /// response, which says then that something is missing. `status`: with some it is said that nothing was added; 0 is
  /// none that is known. `is_replaced`: a lineage is there already, which is taken out of a shared one.
  std::optional<std::string> ResponseText(LineageScope& scope, bool is_public = false, int status = 0,
                                          bool is_replaced = false);

  /// Whether a lineage may go to this caller at all; where not, what the application set is taken out.
  bool MayAnswer() const;

 private:
  Inbound(std::string peer, std::vector<std::pair<std::string, std::string>> forwarded, std::optional<bool> edge);

  const std::string peer_;
  const std::vector<std::pair<std::string, std::string>> forwarded_;
  const std::optional<bool> edge_;
  std::mutex mutex_;
  Lineage reported_;
};

/// Opens the scope of a request that came in with these headers; it is current, and closes, with the object returned.
///
/// `peer`: the socket's own address, as the server itself received it, never one that a proxy's header names
/// (TRUST-33); `unix:` for a Unix socket. A request without a peer is public, unless ANTIPODE_TRUST_UNIX says otherwise
/// (TRUST-9).
Scope ExtractRequest(const Carrier& headers, std::string_view peer = {}, std::optional<bool> edge = std::nullopt,
                     Site site = Site());

/// Puts the current scope's lineage into a request's headers, if `host` (with or without port) is approved (TRUST-15),
/// and takes an older one out.
///
/// Gives an error (kPendingWrite) under `on_pending=raise`, for tests, and nothing else; then nothing was written.
std::optional<Error> InjectRequest(Carrier& headers, std::string_view host, Site site = Site());
inline std::optional<Error> InjectRequest(Carrier&& headers, std::string_view host, Site site = Site()) {
  return InjectRequest(headers, host, site);
}

/// Joins what a response from `host` brought back into the current scope, if it is believed (PROP-14).
void ExtractResponse(const Carrier& headers, std::string_view host, Site site = Site());
/// The same where the status is known: one that a gateway gives by itself, without a lineage, is no answer (PROP-31).
void ExtractResponse(const Carrier& headers, std::string_view host, int status, Site site = Site());

/// Puts what the current request's scope added into the response's headers, before they leave (PROP-13).
///
/// `is_public`: shared caches may keep the response; by default its headers say it (PROP-16, PROP-34).
void InjectResponse(Carrier& headers, std::optional<bool> is_public = std::nullopt);
inline void InjectResponse(Carrier&& headers, std::optional<bool> is_public = std::nullopt) {
  InjectResponse(headers, is_public);
}
/// The same where the request's method and the response's status are known, which say more surely what shared caches
/// keep, and who has answered (PROP-31, PROP-39).
void InjectResponse(Carrier& headers, std::string_view method, int status);
inline void InjectResponse(Carrier&& headers, std::string_view method, int status) {
  InjectResponse(headers, method, status);
}

/// A call may have reached `host` and brought no answer: what the callee wrote is missing here (PROP-27).
///
/// `words`: the client's own, without what could be private. Not for a call that is known not to have left.
void Unanswered(std::string_view host, std::string_view words, Site site = Site());

/// The text that may leave for `host` now, for who writes it himself; nothing where none may or need.
Result<std::optional<std::string>> TextForRequest(std::string_view host, Site site = Site());

}  // namespace antipode

#endif  // ANTIPODE_PROPAGATION_H_
