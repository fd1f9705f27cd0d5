set(ANTIPODE_PC_IN ${CMAKE_CURRENT_LIST_DIR}/antipode.pc.in)

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

# antipode_library(<target> <name> LIBRARIES …): what every library of this package is besides: antipode::<name>, which
# shows what its public headers declare and hides the rest, and <target>_inner, which hides nothing, for its own tests.
# That is the library itself where it is static; else a static one of the same objects, with these libraries.
function(antipode_library target name)
  cmake_parse_arguments(INNER "" "" "LIBRARIES" ${ARGN})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON DEFINE_SYMBOL ""
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(NOT BUILD_SHARED_LIBS)
    add_library(${target}_inner ALIAS ${target})
    return()
  endif()
  target_link_options(${target} PRIVATE $<$<NOT:$<BOOL:${ANTIPODE_SANITIZE}>>:-Wl,-z,defs>)
  if(NOT TARGET antipode_shared)
    add_custom_target(antipode_shared)
  endif()
  add_dependencies(antipode_shared ${target})
  add_library(${target}_inner STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}>)
  set_target_properties(${target}_inner PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(${target}_inner PUBLIC cxx_std_17)
  target_include_directories(${target}_inner PUBLIC $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  target_include_directories(${target}_inner SYSTEM PUBLIC
    $<TARGET_PROPERTY:${target},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target}_inner PUBLIC ${INNER_LIBRARIES})
endfunction()

# antipode_pkg_config(<target> DESCRIPTION … [REQUIRES …] [STATIC_REQUIRES …] [LIBS …]): what `pkg-config <target>` finds.
# STATIC_REQUIRES: what the static library needs, without having to say --static, and the shared one has linked.
function(antipode_pkg_config target)
  cmake_parse_arguments(PC "" "DESCRIPTION" "REQUIRES;STATIC_REQUIRES;LIBS" ${ARGN})
  file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(PC_PRIVATE "")
  if(BUILD_SHARED_LIBS)
    set(PC_PRIVATE ${PC_STATIC_REQUIRES})
  else()
    list(APPEND PC_REQUIRES ${PC_STATIC_REQUIRES})
  endif()
  foreach(list PC_REQUIRES PC_PRIVATE PC_LIBS)
    list(JOIN ${list} " " ${list})
  endforeach()
  configure_file(${ANTIPODE_PC_IN} ${target}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${target}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# What every program of tests is built with: the same, translated fast instead of made fast. What it tests stays as it
# is, and under sanitizers nothing is said here.
function(antipode_test_target target)
  antipode_target(${target})
  if(NOT ANTIPODE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
