#include "antipode/carry.h"

#include "scope/context.h"

namespace antipode {

CarriedContext::CarriedContext() : scope_(CurrentScope()), reading_(context::Current().reading) {
  if (scope_ != nullptr && scope_->kind() == ScopeKind::kDetached) {
    scope_->Hold();
    holds_ = true;
  }
}

CarriedContext::~CarriedContext() { Release(); }

void CarriedContext::Release() {
  if (holds_.exchange(false)) scope_->Release();
}

CarriedContext::Entered::Entered(const CarriedContext& context)
    : entered_(context::Enter({context.scope_, context.reading_})) {}

CarriedContext::Entered::~Entered() { context::Leave(entered_); }

}  // namespace antipode
