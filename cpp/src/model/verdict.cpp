#include "antipode/verdict.h"

namespace antipode {

std::string_view ToString(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kVisible:
      return "visible";
    case Verdict::kTimedOut:
      return "timed_out";
    case Verdict::kUnproven:
      return "unproven";
    case Verdict::kElsewhere:
      return "elsewhere";
    case Verdict::kNotYet:
      return "not_yet";
  }
  return "unproven";
}

std::string_view ToString(UnprovenKind kind) noexcept {
  switch (kind) {
    case UnprovenKind::kHistory:
      return "history";
    case UnprovenKind::kRight:
      return "right";
    case UnprovenKind::kConnection:
      return "connection";
    case UnprovenKind::kNotOpened:
      return "not_opened";
    case UnprovenKind::kMisspelt:
      return "misspelt";
    case UnprovenKind::kDiscovery:
      return "discovery";
    case UnprovenKind::kUnfit:
      return "unfit";
    case UnprovenKind::kOwnFault:
      return "own_fault";
    case UnprovenKind::kOther:
      return "other";
  }
  return "other";
}

std::string_view ToString(Reach reach) noexcept {
  switch (reach) {
    case Reach::kSession:
      return "session";
    case Reach::kReplica:
      return "replica";
    case Reach::kRegion:
      return "region";
  }
  return "region";
}

}  // namespace antipode
