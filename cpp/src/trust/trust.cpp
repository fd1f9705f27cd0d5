#include "trust/trust.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "antipode/logs.h"
#include "base/observers.h"
#include "model/quote.h"
#include "model/text.h"
#include "trust/hosts.h"
#include "trust/seal.h"

namespace antipode {
namespace {

Decision Refused(Reason reason, std::string_view about = {}) { return {false, {}, reason, std::string(about), {}}; }

Decision Accepted(std::string_view text = {}) { return {true, std::string(text), Reason::kNone, {}, {}}; }

Decision JudgeAddresses(std::string_view peer, const std::vector<Line>& forwarded, const TrustSettings& trust) {
  if (peer.empty()) {
    if (!trust.unix_peers) return Refused(Reason::kNoPeer);
  } else if (!IsPrivatePeer(peer)) {
    return Refused(Reason::kPeer, peer);
  }
  if (!trust.ignore_forwarded) {
    if (AreTooLong(forwarded)) return Refused(Reason::kTooLong, peer);
    if (auto found = PublicAddressIn(forwarded)) {
      return {false, {}, Reason::kForwarded, std::move(found->second), std::move(found->first)};
    }
  }
  return Accepted();
}

Decision JudgeSeal(std::string_view text, const TrustSettings& trust, Purpose purpose, double now) {
  const OpenedSeal opened = OpenSeal(text, trust.keys, purpose, now);
  if (opened.state != SealState::kValid && opened.state != SealState::kExpired) {
    return Refused(Reason::kSeal, ToString(opened.state));
  }
  Decision decision = Accepted(opened.text);
  if (opened.state == SealState::kExpired) {
    decision.reason = Reason::kSeal;
    decision.about = ToString(opened.state);
  }
  return decision;
}

std::string_view CureOf(Reason reason) {
  switch (reason) {
    case Reason::kForwarded:
      return "If this is the edge set ANTIPODE_EDGE=true; if applications copy that header inside, "
             "ANTIPODE_FORWARDED=ignore.";
    case Reason::kPeer:
      return "If this is the edge set ANTIPODE_EDGE=true; if callers inside have public addresses, seal lineages with "
             "ANTIPODE_KEYS_FILE.";
    case Reason::kNoPeer:
      return "If it listens on a Unix socket set ANTIPODE_TRUST_UNIX=true.";
    case Reason::kTooLong:
      return "If this is the edge set ANTIPODE_EDGE=true; else do not copy those headers from hop to hop.";
    case Reason::kHost:
      return "If it is one of yours add it to ANTIPODE_PEERS.";
    case Reason::kSeal:
      return "Give this service and its callers the same keys (ANTIPODE_KEYS_FILE) and the right time.";
    default:
      return {};  // the operator asked for exactly this
  }
}

std::string_view SealWords(std::string_view state) {
  if (state == ToString(SealState::kMissing)) return "it has no seal";
  if (state == ToString(SealState::kExpired)) {
    return "its seal has expired (ANTIPODE_SEAL_TTL_S, ANTIPODE_SEAL_REST_TTL_S)";
  }
  if (state == ToString(SealState::kUnknownKey)) return "its seal is by a key that is not known here";
  return "its seal is not right";
}

bool IsOutward(Direction direction) {
  return direction == Direction::kRequestOut || direction == Direction::kResponseOut ||
         direction == Direction::kMessageOut;
}

}  // namespace

std::string_view ToString(Direction direction) {
  switch (direction) {
    case Direction::kRequestIn:
      return "request_in";
    case Direction::kRequestOut:
      return "request_out";
    case Direction::kResponseIn:
      return "response_in";
    case Direction::kResponseOut:
      return "response_out";
    case Direction::kMessageIn:
      return "message_in";
    case Direction::kMessageOut:
      return "message_out";
  }
  return "request_in";
}

std::string Words(Direction direction) {
  std::string words(ToString(direction));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string_view ToString(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kOff:
      return "trust is none";
    case Reason::kEdge:
      return "this is an edge";
    case Reason::kPeer:
      return "the peer's address is public";
    case Reason::kForwarded:
      return "a forwarding header has a public address";
    case Reason::kNoPeer:
      return "the server names no peer";
    case Reason::kTooLong:
      return "the forwarding headers have more than 64 hops or 4,096 octets";
    case Reason::kHost:
      return "the host is not approved";
    case Reason::kOption:
      return "the client was told not to";
    case Reason::kSeal:
      return "the seal is not valid";
  }
  return "";
}

TrustSettings TrustSettings::AtEdge(std::optional<bool> also) const {
  TrustSettings these = *this;
  these.edge = edge || also.value_or(false);
  return these;
}

Result<TrustSettings> TrustOf(const Settings& settings) {
  Result<Peers> peers = Peers::Make(settings.peers);
  if (!peers) return peers.error();
  TrustSettings trust;
  trust.trust = settings.trust;
  trust.edge = settings.edge;
  trust.ignore_forwarded = settings.forwarded == Forwarded::kIgnore;
  trust.peers = *std::move(peers);
  trust.keys = settings.keys;
  trust.seal_ttl = settings.seal_ttl;
  trust.seal_rest_ttl = settings.seal_rest_ttl;
  trust.unix_peers = settings.trust_unix;
  return trust;
}

std::shared_ptr<const TrustSettings> CurrentTrust() {
  struct Seen {
    std::shared_ptr<const Settings> settings;
    std::shared_ptr<const TrustSettings> trust;
  };
  thread_local Seen seen;
  const std::shared_ptr<const Settings> now = CurrentSettings();
  if (seen.settings != now) {
    TrustSettings nobody;
    nobody.trust = Trust::kNone;
    nobody.edge = true;
    // Peers that are none were refused when the settings were made.
    seen.trust = std::make_shared<const TrustSettings>(TrustOf(*now).value_or(std::move(nobody)));
    seen.settings = now;
  }
  return seen.trust;
}

double UnixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Decision JudgeCaller(std::string_view peer, const std::vector<Line>& forwarded, const TrustSettings& trust) {
  if (trust.edge) return Refused(Reason::kEdge);
  if (trust.trust == Trust::kNone) return Refused(Reason::kOff);
  if (trust.trust != Trust::kPrivate) return Accepted();  // under `key` each text's seal decides
  return JudgeAddresses(peer, forwarded, trust);
}

Decision JudgeRequestText(const Decision& caller, std::string_view text, const TrustSettings& trust, double now) {
  if (!caller.accepted) return caller;
  return trust.trust == Trust::kKey ? JudgeSeal(text, trust, Purpose::kRequest, now) : Accepted(StripSeal(text));
}

Decision JudgeResponseOut(std::string_view peer, const std::vector<Line>& forwarded, const TrustSettings& trust) {
  const Decision decision = JudgeCaller(peer, forwarded, trust);
  return decision.accepted && trust.trust == Trust::kKey ? JudgeAddresses(peer, forwarded, trust) : decision;
}

Decision JudgeRequestOut(std::string_view host, const TrustSettings& trust) {
  if (trust.trust == Trust::kNone) return Refused(Reason::kOff, host);
  if ((trust.trust == Trust::kAll && !trust.edge) || IsApproved(host, trust)) return Accepted();
  return Refused(Reason::kHost, host);
}

Decision JudgeResponseIn(std::string_view host, std::string_view text, const TrustSettings& trust, double now) {
  Decision decision = JudgeRequestOut(host, trust);
  if (trust.trust == Trust::kKey && !(trust.edge && !decision.accepted)) {
    return JudgeSeal(text, trust, Purpose::kResponse, now);
  }
  return decision.accepted ? Accepted(StripSeal(text)) : decision;
}

Decision JudgeMessageIn(std::string_view text, const TrustSettings& trust, std::optional<bool> allowed, Purpose purpose,
                        double now) {
  if (allowed && !*allowed) return Refused(Reason::kOption);
  if (trust.trust == Trust::kNone) return Refused(Reason::kOff);
  if (trust.edge && !allowed) return Refused(Reason::kEdge);
  return trust.trust == Trust::kKey ? JudgeSeal(text, trust, purpose, now) : Accepted(StripSeal(text));
}

Decision JudgeMessageOut(const TrustSettings& trust, std::optional<bool> allowed) {
  if (allowed && !*allowed) return Refused(Reason::kOption);
  return trust.trust == Trust::kNone ? Refused(Reason::kOff) : Accepted();
}

bool IsApproved(std::string_view host, const TrustSettings& trust) {
  const std::optional<Host> read = ReadHost(host);
  return read && (IsInside(*read) || trust.peers.Lists(read->name));
}

std::string OutgoingText(std::string text, const TrustSettings& trust, Purpose purpose, double now) {
  if (trust.trust != Trust::kKey) return text;
  const bool rests = purpose == Purpose::kMessage || purpose == Purpose::kValue;
  const Duration life = rests ? trust.seal_rest_ttl : trust.seal_ttl;
  if (rests && life == Duration::zero()) return Seal(text, trust.keys, purpose, 0);
  const double expiry = std::floor(now + std::chrono::duration<double>(life).count());
  return Seal(text, trust.keys, purpose, static_cast<std::int64_t>(expiry));
}

void Report(const Decision& decision, Direction direction, std::string_view sender) {
  const bool by_seal = decision.reason == Reason::kSeal;
  Events().LineageDropped(by_seal ? "seal" : "untrusted", ToString(direction));
  const std::string_view cure = CureOf(decision.reason);
  if (cure.empty()) return;
  std::string where = Shown(by_seal ? sender : std::string_view(decision.about));
  if (where.empty()) where = "a peer without a name";
  std::string reason(ToString(decision.reason));
  if (decision.reason == Reason::kForwarded) reason = decision.header + " has a public address";
  if (by_seal) reason = SealWords(decision.about);
  std::string verb = IsOutward(direction) ? "did not send a lineage to " : "dropped a lineage from ";
  if (decision.accepted) verb = "took an old lineage from ";
  // The kind leaves the address out: an attacker with many of them must not fill the log.
  const std::string kind =
      "trust " + Words(direction) + " " + std::string(ToString(decision.reason)) + " " + decision.header;
  const MessageCode code = IsOutward(direction) ? "AP404" : decision.accepted ? "AP409" : "AP403";
  logs::Warn(code, kind, verb + where + " (" + Words(direction) + "): " + reason + ". " + std::string(cure), "dropped");
}

void WarnOfForwarded(std::string_view host, const std::vector<Line>& forwarded, const TrustSettings& trust) {
  if (trust.trust != Trust::kPrivate || trust.ignore_forwarded) return;
  const std::optional<Line> found = PublicAddressIn(forwarded);
  if (!found) return;
  const auto& [header, address] = *found;
  logs::Warn(
      "AP414", "trust beside " + header,
      "sent a lineage to " + Shown(host) + " beside " + header + ", which has a public address (" + Shown(address) +
          "): the receiver drops it. Do not copy that header, or set ANTIPODE_FORWARDED=ignore at the receiver and "
          "here.",
      "sent");
}

}  // namespace antipode
