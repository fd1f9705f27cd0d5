// A process in which the n-th call for memory, or for a thread, fails: this program has both functions (BAR-61).
#ifndef ANTIPODE_TESTS_FAULTS_FAULTS_H_
#define ANTIPODE_TESTS_FAULTS_FAULTS_H_

namespace antipode::testing {

enum class Lack { kMemory, kThread };

// While it lives the calls from the n-th on fail, so many of them: those of Antipode's threads, and of this one where
// it counts; or those of the threads of one name alone.
class Fault {
 public:
  Fault(Lack lack, long first, long count = 1, const char* thread = nullptr);
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault();

  // How many have failed.
  static long Failed();
};

// While it lives the calls of this thread count, too.
class Counting {
 public:
  Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_FAULTS_FAULTS_H_
