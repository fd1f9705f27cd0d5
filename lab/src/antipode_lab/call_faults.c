// Fails the n-th call of one function of the system in the process that preloads it (spec BAR-61): call_faults.py.
//
// The process speaks to it by opening a file that is none, which every language can. It reads there what came of the words:
// how many calls were counted since the last `arm`, how many of them failed, and whether the calling thread counts.
//
//   antipode-faults:arm socket 3 once    the third call fails
//   antipode-faults:arm socket 3 burst   the third and nineteen more
//   antipode-faults:arm socket 3 on      the third and all that follow, until `disarm`
//   antipode-faults:disarm
//   antipode-faults:spare, :count        calls of the calling thread count no more, or again
//   antipode-faults:calls                nothing but the answer
//
// Counted are the calls of threads whose name begins with "antipode": the JVM's own threads go on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum Function { NONE, SOCKET, CONNECT, PIPE, EVENTFD, EPOLL, POLL, THREAD, MEMORY, OPEN, FUNCTIONS };

static const char* const names[FUNCTIONS] = {
    "none", "socket", "connect", "pipe", "eventfd", "epoll", "poll", "thread", "memory", "open"};
static const int errors[FUNCTIONS] = {0, EMFILE, ENOBUFS, EMFILE, EMFILE, EMFILE, ENOMEM, EAGAIN, ENOMEM, EMFILE};
static const char prefix[] = "antipode-faults:";

static atomic_int armed = NONE;
static atomic_long first = 0;
static atomic_long last = 0;
static atomic_long counted = 0;
static atomic_long failed = 0;
static __thread int spared __attribute__((tls_model("initial-exec"))) = 0;

static int is_ours(void) {
  char name[17] = "";
  return !spared && prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && strncmp(name, "antipode", 8) == 0;
}

// Whether this call is to fail; errno says why then.
static int fails(enum Function function) {
  if (atomic_load(&armed) != (int)function) return 0;
  const int before = errno;
  const int ours = is_ours();
  errno = before;
  if (!ours) return 0;
  const long number = atomic_fetch_add(&counted, 1) + 1;
  if (number < atomic_load(&first) || number > atomic_load(&last)) return 0;
  atomic_fetch_add(&failed, 1);
  errno = errors[function];
  return 1;
}

static void do_as_told(const char* words) {
  char name[16] = "";
  char kind[8] = "";
  long number = 0;
  if (sscanf(words, "arm %15s %ld %7s", name, &number, kind) == 3) {
    for (int function = 1; function < FUNCTIONS; function++) {
      if (strcmp(name, names[function]) != 0) continue;
      atomic_store(&armed, NONE);
      atomic_store(&counted, 0);
      atomic_store(&failed, 0);
      atomic_store(&first, number);
      atomic_store(&last, strcmp(kind, "on") == 0 ? LONG_MAX : strcmp(kind, "burst") == 0 ? number + 19 : number);
      atomic_store(&armed, function);
    }
  } else if (strcmp(words, "disarm") == 0) {
    atomic_store(&armed, NONE);
  } else if (strcmp(words, "spare") == 0) {
    spared = 1;
  } else if (strcmp(words, "count") == 0) {
    spared = 0;
  }
}

// A file with the answer to what a process has said by opening this path; -1 where it is a path like any other.
static int answer(const char* path) {
  const char* words = path == NULL ? NULL : strstr(path, prefix);
  if (words == NULL) return -1;
  do_as_told(words + sizeof prefix - 1);
  char text[80];
  const int length =
      snprintf(text, sizeof text, "%ld %ld %d\n", atomic_load(&counted), atomic_load(&failed), is_ours());
  const int file = (int)syscall(SYS_memfd_create, "antipode-faults", MFD_CLOEXEC);
  if (file >= 0 && (write(file, text, (size_t)length) != length || lseek(file, 0, SEEK_SET) != 0)) abort();
  return file;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int socket(int domain, int type, int protocol) {
  return fails(SOCKET) ? -1 : NEXT(socket)(domain, type, protocol);
}

int connect(int file, const struct sockaddr* address, socklen_t length) {
  return fails(CONNECT) ? -1 : NEXT(connect)(file, address, length);
}

int pipe(int files[2]) { return fails(PIPE) ? -1 : NEXT(pipe)(files); }

int pipe2(int files[2], int flags) { return fails(PIPE) ? -1 : NEXT(pipe2)(files, flags); }

int eventfd(unsigned int count, int flags) { return fails(EVENTFD) ? -1 : NEXT(eventfd)(count, flags); }

int epoll_create1(int flags) { return fails(EPOLL) ? -1 : NEXT(epoll_create1)(flags); }

int poll(struct pollfd* files, nfds_t count, int timeout) {
  return fails(POLL) ? -1 : NEXT(poll)(files, count, timeout);
}

int ppoll(struct pollfd* files, nfds_t count, const struct timespec* timeout, const sigset_t* signals) {
  return fails(POLL) ? -1 : NEXT(ppoll)(files, count, timeout, signals);
}

int select(int count, fd_set* read, fd_set* write, fd_set* except, struct timeval* timeout) {
  return fails(POLL) ? -1 : NEXT(select)(count, read, write, except, timeout);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*), void* argument) {
  return fails(THREAD) ? errno : NEXT(pthread_create)(thread, attributes, work, argument);
}

static mode_t mode_in(int flags, va_list words) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(words, mode_t) : 0;
}

#define OPENS(name)                                     \
  int name(const char* path, int flags, ...) {          \
    va_list words;                                      \
    va_start(words, flags);                             \
    const mode_t mode = mode_in(flags, words);          \
    va_end(words);                                      \
    const int told = answer(path);                      \
    if (told >= 0) return told;                         \
    return fails(OPEN) ? -1 : NEXT(name)(path, flags, mode); \
  }

#define OPENS_AT(name)                                          \
  int name(int folder, const char* path, int flags, ...) {      \
    va_list words;                                              \
    va_start(words, flags);                                     \
    const mode_t mode = mode_in(flags, words);                  \
    va_end(words);                                              \
    const int told = answer(path);                              \
    if (told >= 0) return told;                                 \
    return fails(OPEN) ? -1 : NEXT(name)(folder, path, flags, mode); \
  }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

// dlsym may take memory itself: the C library's own names are called.
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);

void* malloc(size_t size) { return fails(MEMORY) ? NULL : __libc_malloc(size); }

void* calloc(size_t count, size_t size) { return fails(MEMORY) ? NULL : __libc_calloc(count, size); }

void* realloc(void* memory, size_t size) { return fails(MEMORY) ? NULL : __libc_realloc(memory, size); }
