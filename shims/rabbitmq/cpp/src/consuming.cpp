// Consuming: one scope a message, filled from the message's own header (spec SCOPE-6, PROP-17, BAR-45).
#include <utility>

#include "antipode/messages.h"
#include "antipode/rabbitmq.h"
#include "headers.h"
#include "message.h"

namespace antipode::rabbitmq {

Scope ScopeOf(const Envelope& envelope, Site site) {
  const std::shared_ptr<DeliveredState>& delivered = EnvelopeAccess::DeliveredOf(envelope);
  if (delivered == nullptr) return ScopeOf(*envelope, site);
  const WrapArguments& told = *delivered->told;
  const Store& store = *told.store;
  const bool is_off = store.mode() == Mode::kOff;
  MessageOptions options;
  options.lineage_in = told.lineage_in;
  options.delivery = Delivery{delivered->never.empty(), delivered->never, delivered};
  options.queue = store.name();
  options.sender = "a message of " + store.name();
  options.stamped = told.stamped && !is_off;
  const amqp_table_t headers = HeadersOf(&envelope->message.properties);
  Scope scope = MessageScope(TableCarrier(headers), options, site);
  if (is_off || !scope.lineage().SectionText(store.name())) return scope;
  if (const auto mark = MarkOf(envelope->message.properties)) told.arrived(*mark);  // its coming is itself a proof
  return scope;
}

Scope ScopeOf(const amqp_envelope_t& envelope, Site site) {
  MessageOptions options;
  options.delivery =
      Delivery{false, "its connection is not wrapped: take it by ConsumeMessage of a wrapped one", nullptr};
  const amqp_table_t headers = HeadersOf(&envelope.message.properties);
  return MessageScope(TableCarrier(headers), options, site);
}

}  // namespace antipode::rabbitmq
