// Ends the fuzzer where something that must hold does not.
#ifndef ANTIPODE_FUZZ_EXPECT_H_
#define ANTIPODE_FUZZ_EXPECT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define EXPECT(condition)                                    \
  do {                                                       \
    if (!(condition)) {                                      \
      std::fprintf(stderr, "does not hold: %s\n", #condition); \
      std::abort();                                          \
    }                                                        \
  } while (false)

inline std::string_view TextOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#endif  // ANTIPODE_FUZZ_EXPECT_H_
