#include "antipode/propagation.h"

#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "antipode/wire.h"
#include "base/observers.h"
#include "model/text.h"
#include "propagation/carriers.h"
#include "propagation/exchange.h"
#include "propagation/shared_caches.h"
#include "scope/scope_impl.h"
#include "scope/unscoped.h"
#include "trust/trust.h"

namespace antipode {
namespace {

// Returns whether a gateway gives this status by itself, of a call that may have reached the callee (PROP-31).
bool IsGateways(int status) {
  return (status >= 502 && status <= 504) || (status >= 520 && status <= 527) || status == 530;
}

void AnswerWith(Carrier& headers, LineageScope& scope, bool shared, int status = 0) {
  const std::shared_ptr<Inbound> inbound = scope.impl().inbound();
  if (inbound == nullptr) return;
  const std::vector<std::string> before = ValuesOf(headers, kLineageHeader);
  const std::optional<std::string> text = inbound->ResponseText(scope, shared, status, !before.empty());
  if (text) {
    headers.Set(kLineageHeader, shared || before.empty() ? *text : Joined(before, ",") + "," + *text);
  } else if (shared || !inbound->MayAnswer()) {  // also what an earlier call wrote (PROP-16)
    headers.Remove(kLineageHeader);
  }
}

}  // namespace

Inbound::Inbound(std::string peer, std::vector<std::pair<std::string, std::string>> forwarded, std::optional<bool> edge)
    : peer_(std::move(peer)), forwarded_(std::move(forwarded)), edge_(edge) {}

ScopePtr Inbound::Open(const InboundHeaders& came, std::string_view peer, std::optional<bool> edge, Site site) {
  Events().RequestBegun();
  const TrustSettings trust = CurrentTrust()->AtEdge(edge);
  const double now = UnixTime();
  // A request without a lineage judges nobody; one with many texts judges its caller once (TRUST-32).
  const Decision caller = came.texts.empty() ? Decision() : JudgeCaller(peer, came.forwarded, trust);
  const ReceivedLineage taken = Take(
      came.texts, [&](std::string_view text) { return JudgeRequestText(caller, text, trust, now); },
      Direction::kRequestIn, peer);
  auto scope = std::make_shared<LineageScope>(taken.lineage, ScopeKind::kRequest, std::nullopt, site);
  taken.NoteIn(*scope, {});
  scope->impl().set_inbound(std::shared_ptr<Inbound>(new Inbound(std::string(peer), came.forwarded, edge)));
  return scope;
}

std::optional<std::string> Inbound::ResponseText(LineageScope& scope, bool is_public, int status, bool is_replaced) {
  scope.NoteSent();
  if (CurrentSettings()->mode == Mode::kOff) return std::nullopt;
  Lineage added = scope.Additions();
  Lineage fresh;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    fresh = added.AddedTo(reported_);
    reported_ = std::move(added);
  }
  // What the caller has already is not said again, and is what it depends on all the same (HIST-30).
  std::optional<Lineage> told;
  if (!CurrentSettings()->history.empty()) told = scope.lineage();
  if (told && told->empty()) told.reset();
  if (is_public && (!fresh.empty() || is_replaced)) {
    logs::Warn("AP404", "response shared",
               "what a request wrote goes back to nobody: shared caches may keep the response.", "dropped");
    fresh = Lineage().MarkedIncomplete();
  } else if (is_public) {
    told.reset();
  }
  const bool is_told = !fresh.empty() || told;
  // That nothing was added is said with some statuses only; a lineage that is there says it already (PROP-13).
  if (!is_told && (is_replaced || (!IsGateways(status) && status != kNotModified))) return std::nullopt;
  const TrustSettings trust = CurrentTrust()->AtEdge(edge_);
  const Decision decision = JudgeResponseOut(peer_, forwarded_, trust);
  if (!decision.accepted) {
    if (is_told) Report(decision, Direction::kResponseOut);
    return std::nullopt;
  }
  std::optional<std::string> text = Give(fresh, trust, Purpose::kResponse, &scope, scope.changed(), told);
  return text ? text : OutgoingText(Lineage().Serialize(), trust, Purpose::kResponse, UnixTime());
}

bool Inbound::MayAnswer() const {
  return JudgeResponseOut(peer_, forwarded_, CurrentTrust()->AtEdge(edge_)).accepted;
}

Scope ExtractRequest(const Carrier& headers, std::string_view peer, std::optional<bool> edge, Site site) {
  return Scope(Inbound::Open(ReadCarrier(headers), peer, edge, site));
}

void InjectResponse(Carrier& headers, std::optional<bool> is_public) {
  if (const ScopePtr scope = CurrentScope()) AnswerWith(headers, *scope, is_public.value_or(IsShared(headers)));
}

void InjectResponse(Carrier& headers, std::string_view method, int status) {
  if (const ScopePtr scope = CurrentScope()) AnswerWith(headers, *scope, IsShared(headers, method, status), status);
}

void Scope::InjectResponse(Carrier& headers, std::optional<bool> is_public) {
  AnswerWith(headers, *scope_, is_public.value_or(IsShared(headers)));
}

void Scope::InjectResponse(Carrier& headers, std::string_view method, int status) {
  AnswerWith(headers, *scope_, IsShared(headers, method, status), status);
}

Result<std::optional<std::string>> TextForRequest(std::string_view host, Site site) {
  const ScopePtr scope = CurrentScope();
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const Decision decision = JudgeRequestOut(host, *trust);
  if (!decision.accepted) {
    if (scope != nullptr && !scope->lineage().empty()) Report(decision, Direction::kRequestOut);
    return std::optional<std::string>();
  }
  if (scope == nullptr) {
    return Give(LineageOutside(Direction::kRequestOut, site), *trust, Purpose::kRequest, nullptr, {});
  }
  const Result<Lineage> leaving = Leaving(*scope, site);
  if (!leaving) return leaving.error();
  if (CurrentSettings()->mode == Mode::kDryRun) Events().LineagePassedOn(*scope, host, site.ToString());
  return Give(*leaving, *trust, Purpose::kRequest, scope.get(), scope->changed());
}

std::optional<Error> InjectRequest(Carrier& headers, std::string_view host, Site site) {
  // Outside any scope a lineage that is there already was put there by somebody: to an approved host it may go.
  const bool is_outside = CurrentScope() == nullptr && JudgeRequestOut(host, *CurrentTrust()).accepted;
  if (is_outside && !ReadCarrier(headers).texts.empty()) return std::nullopt;
  const Result<std::optional<std::string>> text = TextForRequest(host, site);
  if (!text) return text.error();
  if (is_outside && !*text) return std::nullopt;
  if (*text) WarnOfForwarded(host, ReadCarrier(headers).forwarded, *CurrentTrust());
  Rewrite(headers, *text, DeclaredFormats());
  return std::nullopt;
}

void ExtractResponse(const Carrier& headers, std::string_view host, Site site) {
  MergeResponse(CurrentScope(), ValuesOf(headers, kLineageHeader), host, site);
}

void ExtractResponse(const Carrier& headers, std::string_view host, int status, Site site) {
  const std::vector<std::string> values = ValuesOf(headers, kLineageHeader);
  if (values.empty() && IsGateways(status)) {
    Unanswered(host, "status " + std::to_string(status), site);
  } else {
    MergeResponse(CurrentScope(), values, host, site);
  }
}

void Unanswered(std::string_view host, std::string_view words, Site site) {
  const ScopePtr scope = CurrentScope();
  if (IsExpected(scope, host)) MarkUnanswered(*scope, host, words, site);
}

}  // namespace antipode
