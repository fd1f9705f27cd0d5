#include "antipode/messages.h"

#include <memory>
#include <utility>
#include <vector>

#include "antipode/propagation.h"
#include "antipode/wire.h"
#include "model/text.h"
#include "propagation/carriers.h"
#include "propagation/exchange.h"
#include "scope/scope_impl.h"
#include "scope/unscoped.h"
#include "trust/seal.h"
#include "trust/trust.h"

namespace antipode {
namespace {

// Headers of a message hold the lineage in its own name alone: a message is no request with baggage.
std::vector<std::string> TextsIn(const Carrier& headers) {
  std::vector<std::string> texts;
  for (const std::string_view name : {kLineageHeader, kJmsProperty}) {
    const std::vector<std::string> values = ValuesOf(headers, name);
    for (std::string& text : wire::UnwrapHeader({values.begin(), values.end()})) texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> TextsIn(std::string_view text) {
  return text.empty() ? std::vector<std::string>() : wire::UnwrapHeader({text});
}

// Whether lineages of these messages count here at all; only then is one that lacks a loss (TRUST-28).
bool IsTaken(const MessageOptions& options) {
  const Decision decision =
      JudgeMessageIn(Lineage().Serialize(), *CurrentTrust(), options.lineage_in, Purpose::kMessage, UnixTime());
  return decision.accepted || decision.reason == Reason::kSeal;
}

void ReceiveTexts(LineageScope& scope, const std::vector<std::string>& texts, const MessageOptions& options) {
  if (texts.empty()) {
    if (!options.stamped || !IsTaken(options)) return;
    scope.Receive(Lineage().MarkedIncomplete());
    scope.impl().NoteGap("malformed", "", options.sender + " came without the lineage that all of them have (stamped)");
    return;
  }
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const double now = UnixTime();
  const ReceivedLineage taken = Take(
      texts,
      [&](std::string_view text) { return JudgeMessageIn(text, *trust, options.lineage_in, Purpose::kMessage, now); },
      Direction::kMessageIn, options.sender);
  scope.Receive(taken.lineage);
  taken.NoteIn(scope, scope.site());
}

Scope OpenMessage(const std::vector<std::string>& texts, const MessageOptions& options, const Site& site) {
  auto scope = std::make_shared<LineageScope>(Lineage(), ScopeKind::kMessage, options.delivery, site);
  scope->set_queue(options.queue);
  ReceiveTexts(*scope, texts, options);
  return Scope(std::move(scope));
}

// The text that leaves with a message of this scope, or (null) rests beside a value, if any may.
std::optional<std::string> Given(const Lineage& lineage, std::optional<bool> lineage_out, Purpose purpose,
                                 LineageScope* sender) {
  if (lineage.empty()) return std::nullopt;
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const Decision decision = JudgeMessageOut(*trust, lineage_out);
  if (!decision.accepted) {
    Report(decision, Direction::kMessageOut);
    return std::nullopt;
  }
  const ScopePtr scope = CurrentScope();
  return Give(lineage, *trust, purpose, sender, scope == nullptr ? std::vector<std::string>() : scope->changed());
}

std::vector<std::string> BetweenWhiteSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  std::vector<std::string> parts;
  while (!(text = Trim(text, kSpace)).empty()) {
    const std::size_t end = std::min(text.find_first_of(kSpace), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

}  // namespace

Scope MessageScope(const Carrier& headers, const MessageOptions& options, Site site) {
  return OpenMessage(TextsIn(headers), options, site);
}

Scope MessageScope(std::string_view text, const MessageOptions& options, Site site) {
  return OpenMessage(TextsIn(text), options, site);
}

void ReceiveText(LineageScope& scope, std::string_view text, const MessageOptions& options) {
  ReceiveTexts(scope, wire::UnwrapHeader({text}), options);
}

Result<std::optional<std::string>> OutgoingMessage(std::optional<bool> lineage_out, Site site) {
  const ScopePtr scope = CurrentScope();
  if (scope == nullptr && !JudgeMessageOut(*CurrentTrust(), lineage_out).accepted) return std::optional<std::string>();
  const Result<Lineage> leaving =
      scope == nullptr ? LineageOutside(Direction::kMessageOut, site) : Leaving(*scope, site);
  if (!leaving) return leaving.error();
  return Given(*leaving, lineage_out, Purpose::kMessage, scope.get());
}

Result<std::optional<std::string>> StampedText(const Stamp& stamp, Site site) {
  const ScopePtr scope = CurrentScope();
  Lineage lineage = stamp.carried;
  if (scope != nullptr) {
    const Result<Lineage> leaving = Leaving(*scope, site);
    if (!leaving) return leaving.error();
    lineage |= *leaving;
  } else if (!stamp.is_anothers) {
    lineage |= LineageOutside(Direction::kMessageOut, site);
  }
  if (stamp.own) lineage = lineage.Including(*stamp.own);
  std::optional<std::string> text = Given(lineage, stamp.lineage_out, Purpose::kMessage, scope.get());
  if (text || !stamp.stamped || scope == nullptr || !lineage.empty()) return text;
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  if (!JudgeMessageOut(*trust, stamp.lineage_out).accepted) return text;
  return std::optional<std::string>(OutgoingText(Lineage().Serialize(), *trust, Purpose::kMessage, UnixTime()));
}

bool IsLineageText(std::string_view value) {
  for (const std::string& text : wire::UnwrapHeader({value})) {
    if (!Lineage::Deserialize(StripSeal(text))) return false;
  }
  return true;
}

std::string TextAtRest(const Lineage& lineage, bool lineage_out) {
  return Given(lineage, lineage_out ? std::nullopt : std::optional<bool>(false), Purpose::kValue, nullptr)
      .value_or(std::string());
}

Lineage LineageAtRest(std::string_view text, const std::string& store, bool lineage_in) {
  const std::vector<std::string> texts = BetweenWhiteSpace(text);
  if (texts.empty() || !lineage_in) return {};
  const std::shared_ptr<const TrustSettings> trust = CurrentTrust();
  const double now = UnixTime();
  const ReceivedLineage taken = Take(
      texts, [&](std::string_view each) { return JudgeMessageIn(each, *trust, std::nullopt, Purpose::kValue, now); },
      Direction::kMessageIn, "a value of " + store);
  taken.TellMissing();
  return taken.HasGap("malformed") ? taken.lineage.Vouched().MarkedIncomplete({store}) : taken.lineage;
}

}  // namespace antipode
