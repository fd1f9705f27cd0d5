// Trust: whose lineages are believed, and who may see ours (spec TRUST).
//
// Each direction is judged before anything is parsed. A judgement is pure; `Report` counts and logs what came of it.
#ifndef ANTIPODE_SRC_TRUST_TRUST_H_
#define ANTIPODE_SRC_TRUST_TRUST_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/keys.h"
#include "antipode/result.h"
#include "antipode/settings.h"
#include "base/peers.h"
#include "trust/addresses.h"
#include "trust/seal.h"

namespace antipode {

// Which way a lineage was going.
enum class Direction { kRequestIn, kRequestOut, kResponseIn, kResponseOut, kMessageIn, kMessageOut };

// The attribute of metrics: `request_in`.
std::string_view ToString(Direction direction);
// For a person: `request in`.
std::string Words(Direction direction);

// Why a lineage was not taken or not sent.
enum class Reason { kNone, kOff, kEdge, kPeer, kNoPeer, kForwarded, kTooLong, kHost, kOption, kSeal };

std::string_view ToString(Reason reason);

// Whether a lineage passes. `text` is it without its seal, and may be parsed only where `accepted`; one whose seal is
// genuine and has expired is accepted with a reason, which is said (TRUST-37).
struct Decision {
  bool accepted = false;
  std::string text;
  Reason reason = Reason::kNone;
  std::string about;   // the address, host or state of a seal that decided
  std::string header;  // the name of the forwarding header that decided
};

// The settings of trust, as they are judged by.
struct TrustSettings {
  Trust trust = Trust::kPrivate;
  bool edge = false;
  bool ignore_forwarded = false;
  Peers peers;
  Keys keys;
  Duration seal_ttl = std::chrono::seconds(300);
  Duration seal_rest_ttl{0};  // 0: as long as the key is known
  bool unix_peers = false;    // a request without a peer came by a Unix socket (TRUST-9)

  // These, with what one middleware was told; an edge that the operator declared stays one.
  TrustSettings AtEdge(std::optional<bool> also) const;

  // How many bytes a seal adds to what leaves.
  std::size_t SealLength() const { return trust == Trust::kKey ? keys.SealLength() : 0; }
};

// What the process's settings say of trust, made anew only when they change.
std::shared_ptr<const TrustSettings> CurrentTrust();

// Of these settings; kConfiguration where a peer is none.
Result<TrustSettings> TrustOf(const Settings& settings);

// Seconds since 1970.
double UnixTime();

// Judging: the table of TRUST-3. The caller is judged once a request, and each text behind it by its own seal
// (TRUST-32).
Decision JudgeCaller(std::string_view peer, const std::vector<Line>& forwarded, const TrustSettings& trust);
Decision JudgeRequestText(const Decision& caller, std::string_view text, const TrustSettings& trust, double now);
Decision JudgeResponseOut(std::string_view peer, const std::vector<Line>& forwarded, const TrustSettings& trust);
Decision JudgeRequestOut(std::string_view host, const TrustSettings& trust);
Decision JudgeResponseIn(std::string_view host, std::string_view text, const TrustSettings& trust, double now);
// `allowed` is `lineage_in` or `lineage_out` of the client; nothing where it was not said.
// `purpose`: of a message, or of a value at rest.
Decision JudgeMessageIn(std::string_view text, const TrustSettings& trust, std::optional<bool> allowed, Purpose purpose,
                        double now);
Decision JudgeMessageOut(const TrustSettings& trust, std::optional<bool> allowed);

// Whether a host is inside, by its name or literal address alone (TRUST-15 to TRUST-17).
bool IsApproved(std::string_view host, const TrustSettings& trust);

// The lineage text as it leaves: sealed under `key` for its purpose (TRUST-23).
std::string OutgoingText(std::string text, const TrustSettings& trust, Purpose purpose, double now);

// Counts a lineage that did not pass, and says once a minute which setting would change that (TRUST-27, TRUST-29).
void Report(const Decision& decision, Direction direction, std::string_view sender = {});

// Says at the sender that a lineage leaves beside a forwarding header for which the receiver drops it (TRUST-30).
void WarnOfForwarded(std::string_view host, const std::vector<Line>& forwarded, const TrustSettings& trust);

}  // namespace antipode

#endif  // ANTIPODE_SRC_TRUST_TRUST_H_
