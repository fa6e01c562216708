# Compile options shared by every target, and the two helpers that each layer uses.

add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wconversion -Werror -fno-math-errno)
# A form's bits must not depend on what the compiler chose to fuse: multiply-adds are written out.
target_compile_options(assay_options INTERFACE -ffp-contract=off)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    # A sanitized build tests plain code, AVX2 and AVX-512. The instruction sets between are the same source, and the
    # release build tests them.
    target_compile_definitions(assay_options INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
  endif()
endif()

# With ASSAY_UNITY the sources of each folder are compiled as one: most of a file's compile time is its headers'.
# Highway compiles a file with foreach_target.h once for every instruction set, so such a file stays alone, and so
# does one that is generated or has options of its own.
function(assay_unite target)
  if(NOT ASSAY_UNITY)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE file)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${file} generated)
    set(alone ${generated})
    if(NOT generated)
      file(STRINGS ${file} targets REGEX "hwy/foreach_target\\.h")
      if(targets)
        set(alone TRUE)
      endif()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "here_${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group} SKIP_UNITY_BUILD_INCLUSION ${alone})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# assay_layer(<name> [ALONE] SOURCES ... LINK ...): one static library, one layer of the design. ALONE: never united.
function(assay_layer name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;LINK" ${ARGN})
  add_library(assay_${name} STATIC ${ARG_SOURCES})
  if(NOT ARG_ALONE)
    assay_unite(assay_${name} ${ARG_SOURCES})
  endif()
  target_link_libraries(assay_${name} PUBLIC assay_options ${ARG_LINK})
  if(ASSAY_BUILD_FUZZ)
    # Every layer carries coverage, so that a fuzzer sees into the parsers that it links.
    target_compile_options(assay_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# assay_tests(<name> [NUMERIC] SOURCES ... LINK ...): one GoogleTest program, its cases known to CTest with label
# <name>. A sanitized program starts slowly, so there CTest knows it as one test rather than a process a case.
# Optimising the tests' own code doubles their build and speeds up only those that compute much: NUMERIC.
function(assay_tests name)
  if(NOT ASSAY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "NUMERIC" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name}_tests ${ARG_SOURCES})
  if(NOT ARG_NUMERIC)
    target_compile_options(${name}_tests PRIVATE -O0)
    assay_unite(${name}_tests ${ARG_SOURCES})
  endif()
  target_link_libraries(${name}_tests PRIVATE assay_options ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name}_tests PRIVATE ASSAY_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  if(ASSAY_SANITIZE)
    add_test(NAME ${name}_tests COMMAND ${name}_tests --gtest_brief=1)
    set_tests_properties(${name}_tests PROPERTIES TIMEOUT 1200 LABELS ${name})
  else()
    gtest_discover_tests(${name}_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS ${name})
  endif()
endfunction()
