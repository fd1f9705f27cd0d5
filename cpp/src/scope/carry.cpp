#include "antipode/carry.h"

#include "scope/context.h"
#include "scope/scope_impl.h"

namespace antipode {

CarriedContext::CarriedContext() : scope_(CurrentScope()), reading_(context::Current().reading) {
  if (scope_ != nullptr && scope_->kind() == ScopeKind::kDetached) {
    scope_->impl().Hold();
    holds_ = true;
  }
}

CarriedContext::~CarriedContext() { Release(); }

void CarriedContext::Release() {
  if (holds_.exchange(false)) scope_->impl().Release();
}

CarriedContext::Entered::Entered(const CarriedContext& context)
    : entered_(context::Enter({context.scope_, context.reading_})) {}

CarriedContext::Entered::~Entered() { context::Leave(entered_); }

}  // namespace antipode
