#include "resting.h"

#include <string>
#include <utility>

#include "field.h"

namespace antipode::redis {
namespace {

Error Refuse(const std::string& words) { return {ErrorCode::kConfiguration, "AP501", words}; }

}  // namespace

Result<void> LineagePlacement::Check(const Options& options) {
  const std::string rest = options.rest.value_or("none");
  if (rest != "none" && rest != "field" && rest != "envelope") {
    return Refuse("RestIn(\"" + rest + "\"): want none, field or envelope");
  }
  if ((rest == "envelope") != !options.envelope_keys.value_or(std::string()).empty()) {
    return Refuse("RestIn(\"envelope\") and EnvelopeKeys(\"post:*\") (as for KEYS) go together");
  }
  return {};
}

LineagePlacement::LineagePlacement(const Options& options)
    : store_(options.name),
      lineage_in_(options.lineage_in.value_or(true)),
      in_field_(options.rest.value_or("none") == "field") {
  if (options.rest.value_or("none") == "envelope") envelopes_.emplace(store_, *options.envelope_keys, lineage_in_);
}

std::optional<Error> LineagePlacement::Refused(const Words& words) const {
  return envelopes_ ? envelopes_->Refused(words) : std::nullopt;
}

bool LineagePlacement::Writes(const Words& words) const {
  return in_field_ ? field::Writes(words) : envelopes_ && envelopes_->Writes(words);
}

std::optional<std::string> LineagePlacement::WireWrite(const Words& words, std::string_view text) const {
  if (!Writes(words)) return std::nullopt;
  if (envelopes_) return envelopes_->Closed(words, text);
  // Where nothing rests there is nothing to join; but the last field that goes takes the lineage with it.
  if (text.empty() && CommandName(words) != "HDEL") return std::nullopt;
  return field::WireWrite(words, text);
}

std::optional<std::string> LineagePlacement::WireRead(const Words& words) const {
  if (!ReadsHash(words)) return std::nullopt;
  return field::WireRead(words);
}

bool LineagePlacement::ReadsHash(const Words& words) const { return in_field_ && field::Reads(words); }

Shown LineagePlacement::Answers(const Words& words) const {
  if (in_field_) return field::Answers(words);
  return envelopes_ ? envelopes_->Answers(words) : Shown();
}

Beside LineagePlacement::Show(const Shown& shown, redisReply& reply) const {
  if (shown.is_plain()) return {};
  return in_field_ ? field::Hide(shown, reply, store_, lineage_in_) : envelopes_->Open(shown, reply);
}

}  // namespace antipode::redis
