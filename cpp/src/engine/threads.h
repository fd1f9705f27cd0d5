/// \file
/// The engine's threads: they begin where somebody waits, and are joined at `Shutdown` and when the process ends.
#ifndef ANTIPODE_ENGINE_THREADS_H_
#define ANTIPODE_ENGINE_THREADS_H_

#include <functional>
#include <string>
#include <thread>

namespace antipode::threads {

/// Whether a thread may be started: not while the process ends.
bool MayStart() noexcept;

/// A thread that runs this with every signal blocked, so that the application's own threads get them.
std::thread Named(const std::string& name, std::function<void()> work);

/// Whether the caller is a thread of the engine, on which nothing may block.
bool OnEngineThread() noexcept;

/// Has `Shutdown` run when the process ends, before what was made earlier is destroyed; done once.
void EndWithProcess();

}  // namespace antipode::threads

#endif  // ANTIPODE_ENGINE_THREADS_H_
