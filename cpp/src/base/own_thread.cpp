#include "base/own_thread.h"

namespace antipode::threads {
namespace {

thread_local bool on_engine_thread = false;

}  // namespace

bool OnEngineThread() noexcept { return on_engine_thread; }

void BeEngineThread() noexcept { on_engine_thread = true; }

}  // namespace antipode::threads
