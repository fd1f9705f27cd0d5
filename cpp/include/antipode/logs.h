/// \file
/// The log `antipode`: each kind of line at most once a minute, with how often it happened meanwhile (OBS-7).
#ifndef ANTIPODE_LOGS_H_
#define ANTIPODE_LOGS_H_

#include <functional>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/message_code.h"

namespace antipode ANTIPODE_EXPORT {

enum class LogLevel { kInfo, kWarning, kError };

/// `INFO`, `WARNING`, `ERROR`.
std::string_view ToString(LogLevel level);

/// What takes the lines; it is called by any thread and must not throw.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// Sends the lines there from now on; an empty one takes the default back: `WARNING antipode: …` to standard error,
/// informative lines not at all.
void SetLogSink(LogSink sink);

namespace logs {

/// Says a line now, with its code behind its first line (OBS-14); `why` comes behind a colon. A line for which this
/// process has no memory is not said.
void Say(MessageCode code, LogLevel level, std::string_view line, std::string_view why = {}) noexcept;

/// Says a line unless one of this kind came within the minute; `count_as` names the running count.
void Warn(MessageCode code, const std::string& kind, std::string_view words, std::string_view count_as = {}) noexcept;
void Info(MessageCode code, const std::string& kind, std::string_view words, std::string_view count_as = {}) noexcept;

/// Forgets what was said (tests).
void Reset();

}  // namespace logs
}  // namespace antipode

#endif  // ANTIPODE_LOGS_H_
