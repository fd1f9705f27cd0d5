#include "faults/faults.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "engine/threads.h"

namespace antipode::testing {
namespace {

constexpr long kNever = std::numeric_limits<long>::max();

struct Calls {
  std::atomic<long> first{kNever};
  std::atomic<long> last{kNever};
  std::atomic<long> counted{0};
};

Calls calls[2];
std::atomic<long> failed{0};
std::atomic<const char*> named{nullptr};
thread_local bool counts = false;

bool IsNamed() {
  const char* const wanted = named.load();
  char name[16] = {};
  return wanted == nullptr ||
         (pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strcmp(name, wanted) == 0);
}

bool Fails(Lack lack) {
  Calls& those = calls[static_cast<int>(lack)];
  if (those.first.load() == kNever || !(counts || threads::OnEngineThread()) || !IsNamed()) return false;
  const long number = those.counted.fetch_add(1) + 1;
  if (number < those.first.load() || number > those.last.load()) return false;
  failed.fetch_add(1);
  return true;
}

}  // namespace

Fault::Fault(Lack lack, long first, long count, const char* thread) {
  named = thread;
  Calls& those = calls[static_cast<int>(lack)];
  failed = 0;
  those.counted = 0;
  those.last = first + count - 1;
  those.first = first;
}

Fault::~Fault() {
  for (Calls& those : calls) those.first = kNever;
}

long Fault::Failed() { return failed.load(); }

Counting::Counting() { counts = true; }

Counting::~Counting() { counts = false; }

}  // namespace antipode::testing

using antipode::testing::Fails;
using antipode::testing::Lack;

void* operator new(std::size_t size) {
  if (Fails(Lack::kMemory)) throw std::bad_alloc();
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                              void* argument) {
  if (Fails(Lack::kThread)) return EAGAIN;
  static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, work, argument);
}
