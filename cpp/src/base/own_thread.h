// The threads of this library.
#ifndef ANTIPODE_SRC_BASE_OWN_THREAD_H_
#define ANTIPODE_SRC_BASE_OWN_THREAD_H_

namespace antipode::threads {

// Return whether the caller is a thread of the engine, on which nothing may block.
bool OnEngineThread() noexcept;

// Note that the caller is one, from its first moment to its last.
void BeEngineThread() noexcept;

}  // namespace antipode::threads

#endif  // ANTIPODE_SRC_BASE_OWN_THREAD_H_
