# What every shim's CMakeLists.txt begins with, after project(antipode_<store> …), and the two functions that build it.
# By itself a shim takes the SDK that is installed, or the one of this repository; in a build that has
# antipode::antipode already, that one.
include_guard(DIRECTORY)

string(TOUPPER ${PROJECT_NAME}_TESTS ANTIPODE_SHIM_TESTS)
option(${ANTIPODE_SHIM_TESTS} "Build the tests (they start real servers)" ${PROJECT_IS_TOP_LEVEL})
option(ANTIPODE_INSTALL "Install the libraries, their headers and packages" ${PROJECT_IS_TOP_LEVEL})

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_filename_component(ANTIPODE_REPOSITORY ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
if(NOT TARGET antipode::antipode)
  find_package(antipode 0.1 CONFIG QUIET)
endif()
if(NOT TARGET antipode::antipode)
  option(ANTIPODE_TESTS "Build the SDK's own tests" OFF)
  option(ANTIPODE_WARNINGS_AS_ERRORS "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
  add_subdirectory(${ANTIPODE_REPOSITORY}/cpp antipode)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/AntipodeTargets.cmake)
foreach(part antipode testing)  # of an installed one
  string(REPLACE antipode_antipode antipode target antipode_${part})
  if(NOT TARGET ${target}_inner)
    add_library(${target}_inner ALIAS antipode::${part})
  endif()
endforeach()

# antipode_shim(<store> SOURCES … LIBRARIES … [INCLUDES …] [PACKAGES …] MODULES …): the library antipode::<store> out of
# these files of src/, its installation, and the tests. INCLUDES: where the client's headers are; PACKAGES and MODULES:
# what `find_package(antipode_<store>)` and `pkg-config antipode_<store>` have to find for its LIBRARIES.
function(antipode_shim store)
  cmake_parse_arguments(SHIM "" "" "SOURCES;LIBRARIES;INCLUDES;PACKAGES;MODULES" ${ARGN})
  set(target antipode_${store})
  list(TRANSFORM SHIM_SOURCES PREPEND src/)
  add_library(${target} ${SHIM_SOURCES})
  add_library(antipode::${store} ALIAS ${target})
  antipode_target(${target})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE src)
  foreach(folder IN LISTS SHIM_INCLUDES)
    target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${folder}>)
  endforeach()
  target_link_libraries(${target} PUBLIC antipode::antipode ${SHIM_LIBRARIES})
  antipode_library(${target} ${store} LIBRARIES antipode_inner ${SHIM_LIBRARIES})

  if(${ANTIPODE_SHIM_TESTS})
    enable_testing()
    add_subdirectory(tests)
  endif()

  if(NOT ANTIPODE_INSTALL)
    return()
  endif()
  set(packages "")
  foreach(package IN LISTS SHIM_PACKAGES)
    string(APPEND packages "find_dependency(${package})\n")
  endforeach()
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/${target})
  configure_package_config_file(${ANTIPODE_REPOSITORY}/cpp/cmake/antipodeShimConfig.cmake.in ${target}Config.cmake
    INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(${target}ConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS ${target} EXPORT ${target}Targets)
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${target}Targets NAMESPACE antipode:: DESTINATION ${folder})
  install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/${target}Config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/${target}ConfigVersion.cmake
    DESTINATION ${folder})
  antipode_pkg_config(${target} DESCRIPTION "${PROJECT_DESCRIPTION}" REQUIRES antipode ${SHIM_MODULES})
endfunction()

# antipode_shim_tests(<store> TIMEOUT <seconds> [DEFINITIONS …]): one program for what needs no server, and one that
# starts a lab of them, once for all its tests.
function(antipode_shim_tests store)
  cmake_parse_arguments(SHIM "" "TIMEOUT" "DEFINITIONS" ${ARGN})
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(nlohmann_json REQUIRED)
  include(GoogleTest)
  foreach(part unit servers)
    set(target antipode_${store}_${part}_tests)
    file(GLOB sources CONFIGURE_DEPENDS ${part}/*.cpp)
    add_executable(${target} ${sources})
    antipode_test_target(${target})
    target_include_directories(${target} PRIVATE
      ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${ANTIPODE_REPOSITORY}/cpp/tests)
    target_link_libraries(${target} PRIVATE
      antipode_${store}_inner antipode_testing_inner
      GTest::gtest GTest::gmock GTest::gtest_main rapidcheck nlohmann_json::nlohmann_json)
    target_compile_definitions(${target} PRIVATE
      ANTIPODE_PYTHON="${ANTIPODE_REPOSITORY}/.venv/bin/python"
      ANTIPODE_COMMAND="${ANTIPODE_REPOSITORY}/.venv/bin/antipode"
      ANTIPODE_LAB_COMMAND="${ANTIPODE_REPOSITORY}/.venv/bin/antipode-lab"
      ANTIPODE_SCHEMA="${ANTIPODE_REPOSITORY}/spec/schemas/record.schema.json"
      ${SHIM_DEFINITIONS})
  endforeach()
  gtest_discover_tests(antipode_${store}_unit_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
  add_test(NAME antipode_${store}_servers COMMAND antipode_${store}_servers_tests)
  set_tests_properties(antipode_${store}_servers PROPERTIES TIMEOUT ${SHIM_TIMEOUT})
endfunction()
