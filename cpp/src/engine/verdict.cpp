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
