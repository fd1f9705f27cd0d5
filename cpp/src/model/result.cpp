#include "antipode/result.h"

#include <cstdio>
#include <cstdlib>

namespace antipode {

std::string_view ErrorName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTimedOut:
      return "BarrierTimeout";
    case ErrorCode::kUnproven:
      return "BarrierUnproven";
    case ErrorCode::kIncomplete:
      return "BarrierIncomplete";
    case ErrorCode::kRedeliver:
      return "Redeliver";
    case ErrorCode::kConfiguration:
      return "ConfigurationError";
    case ErrorCode::kUnknownStore:
      return "UnknownStoreError";
    case ErrorCode::kUnfitStore:
      return "UnfitStoreError";
    case ErrorCode::kBlockingCall:
      return "BlockingCallError";
    case ErrorCode::kPendingWrite:
      return "PendingWriteError";
    case ErrorCode::kMalformedLineage:
      return "MalformedLineageError";
  }
  return "AntipodeError";
}

std::string Error::Words() const {
  const std::string shown = WithCode("", message_code);
  const std::size_t at = shown.empty() ? std::string::npos : message.substr(0, message.find('\n')).rfind(shown);
  return at == std::string::npos ? message : std::string(message).erase(at, shown.size());
}

namespace detail {

void AbortOnError(const Error& error) {
  const std::string_view name = ErrorName(error.code);
  std::fprintf(stderr, "antipode: the value of a failed result was asked for: %.*s: %s\n",
               static_cast<int>(name.size()), name.data(), error.message.c_str());
  std::abort();
}

}  // namespace detail
}  // namespace antipode
