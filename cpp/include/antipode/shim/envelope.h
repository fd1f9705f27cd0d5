/// \file
/// The envelope: a value and the lineage beside it in one string of octets, for stores without a place of their own for
/// it (spec SHIM-34 to SHIM-37).
#ifndef ANTIPODE_SHIM_ENVELOPE_H_
#define ANTIPODE_SHIM_ENVELOPE_H_

#include <optional>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/result.h"

namespace antipode ANTIPODE_EXPORT {

/// What octets from a store were. Views are into those octets.
struct OpenedEnvelope {
  /// The application's value; where the envelope is broken all octets, as they stand: a value is never lost.
  std::string_view value;
  /// The lineage's text, not judged yet; nothing for a value without envelope or with a broken one.
  std::optional<std::string_view> text;
  /// Why an envelope could not be opened.
  std::string_view fault;
};

/// A value with a lineage's text in one; without a lineage the value as it is, unless it looks like an envelope.
///
/// Fails (kConfiguration) for a text that is not ASCII or is longer than 65,535 bytes.
Result<std::string> CloseEnvelope(std::string_view value, std::string_view text);

/// What octets from a store are.
OpenedEnvelope OpenEnvelope(std::string_view octets);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_ENVELOPE_H_
