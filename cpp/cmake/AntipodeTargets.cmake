# What every target of this package is built with: C++17, warnings, sanitizers.
function(antipode_target target)
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(ANTIPODE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  foreach(sanitizer IN LISTS ANTIPODE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizer} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${sanitizer})
    if(sanitizer STREQUAL undefined)
      # vptr looks at memory through a pipe: where a test takes all descriptors away it finds fault with each object.
      target_compile_options(${target} PRIVATE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
    endif()
  endforeach()
endfunction()

# What every program of tests is built with: the same, translated fast instead of made fast. What it tests stays as it
# is, and under sanitizers nothing is said here.
function(antipode_test_target target)
  antipode_target(${target})
  if(NOT ANTIPODE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
