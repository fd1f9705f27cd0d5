/// \file
/// Messages: one scope each, filled from the message's own header, and the header of what is sent (spec PROP-17 to
/// PROP-20).
#ifndef ANTIPODE_MESSAGES_H_
#define ANTIPODE_MESSAGES_H_

#include <optional>
#include <string>
#include <string_view>

#include "antipode/carrier.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/result.h"
#include "antipode/scope.h"
#include "antipode/site.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// How a message's scope is opened.
struct MessageOptions {
  /// What the client was told: whether lineages of its messages are taken.
  std::optional<bool> lineage_in;
  /// Whether a barrier may give the message back.
  std::optional<Delivery> delivery;
  /// The store of the message, where a shim consumed it: for dry-run's records.
  std::string queue = {};
  /// Whose message it is, for log lines.
  std::string sender = "a message";
  /// Every sender stamps these messages: one without a lineage has lost it, where lineages are taken at all.
  bool stamped = false;
};

/// Opens the scope of one message from its headers; it is current, and closes, with the object returned.
///
/// What may not be believed is dropped and counted; what cannot be read leaves the scope incomplete. With `mode=off` a
/// lineage is still taken, because it is still passed on (PROP-26).
Scope MessageScope(const Carrier& headers, const MessageOptions& options = {}, Site site = Site());
/// The same from a lineage text; an empty one is none.
Scope MessageScope(std::string_view text, const MessageOptions& options = {}, Site site = Site());

/// Joins a message's or value's lineage text into its scope, if it is trusted and can be read.
void ReceiveText(LineageScope& scope, std::string_view text, const MessageOptions& options = {});

/// The header's value for a message that is sent now in the current scope; nothing where it carries none.
///
/// `lineage_out`: what the client was told. Fails (kPendingWrite) only with `on_pending=raise`.
Result<std::optional<std::string>> OutgoingMessage(std::optional<bool> lineage_out = std::nullopt, Site site = Site());

/// What a message carries beside the scope's lineage: for shims of queues.
struct Stamp {
  /// What the client was told.
  std::optional<bool> lineage_out;
  /// What the message's own headers brought, as far as it was believed: of another message than the scope's.
  Lineage carried;
  /// Whether they brought one that was believed: outside any scope that says what the message depends on (SCOPE-31).
  bool is_anothers = false;
  /// The message's own identifier (`track`, SHIM-17).
  std::optional<WriteId> own;
  /// The empty lineage is carried, too.
  bool stamped = false;
};

/// The header's value for a message that is sent now, in the current scope or outside any; as `OutgoingMessage`.
Result<std::optional<std::string>> StampedText(const Stamp& stamp, Site site = Site());

/// Whether a header's value is a lineage, sealed or not, and nothing that an application has under that name.
bool IsLineageText(std::string_view value);

/// The text that rests beside a value, sealed where seals are asked for; empty where none does.
std::string TextAtRest(const Lineage& lineage, bool lineage_out = true);

/// The lineage that rests beside a value, as its text; several between white space are joined.
///
/// What cannot be read is incomplete for the store (SHIM-14).
Lineage LineageAtRest(std::string_view text, const std::string& store, bool lineage_in = true);

}  // namespace antipode

#endif  // ANTIPODE_MESSAGES_H_
