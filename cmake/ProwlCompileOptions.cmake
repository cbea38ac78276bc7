# Flags of the project's own targets. Linked privately, so that none reaches a user's code.
add_library(prowl_compile_options INTERFACE)
# No function here reads errno of a mathematical one; without it, loops with square roots vectorise.
target_compile_options(prowl_compile_options INTERFACE -Wall -Wextra -Wshadow -Wpedantic -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(prowl_compile_options INTERFACE -Wno-restrict) # false positives on string +, GCC bug 105651
endif()
if(PROWL_WERROR)
  target_compile_options(prowl_compile_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER MATCHES "nvcc_wrapper$")
    # Of nvcc itself; 2810: it takes the value of an assignment to a [[nodiscard]] object for one that is dropped.
    target_compile_options(prowl_compile_options INTERFACE -Werror=all-warnings "SHELL:-Xcudafe --diag_suppress=2810")
  endif()
endif()
if(PROWL_NATIVE)
  # GCC 12 with AVX-512 compiles the constant {3, 3, 3, 0} to four threes (Debian 12's 12.2; -O3, from x86-64-v4): flags are taken
  # only after they were tried.
  include(CheckCXXSourceRuns)
  function(prowl_try_flags variable)
    list(JOIN ARGN " " flags)
    set(CMAKE_REQUIRED_FLAGS "-O3 ${flags}")
    set(CMAKE_REQUIRED_QUIET ON)
    check_cxx_source_runs("
      #include <vector>
      __attribute__((noinline)) std::vector<long> constant() { return std::vector<long>{3, 3, 3, 0}; }
      int main() { return int(constant()[3]); }" ${variable})
  endfunction()
  prowl_try_flags(PROWL_NATIVE_WORKS -march=native)
  if(PROWL_NATIVE_WORKS)
    target_compile_options(prowl_compile_options INTERFACE -march=native)
  else()
    prowl_try_flags(PROWL_NATIVE_WITHOUT_AVX512_WORKS -march=native -mno-avx512f)
    if(PROWL_NATIVE_WITHOUT_AVX512_WORKS)
      message(STATUS "Prowl: this compiler's -march=native makes wrong code here; without AVX-512 it does not")
      target_compile_options(prowl_compile_options INTERFACE -march=native -mno-avx512f)
    else()
      message(WARNING "Prowl: this compiler's -march=native makes wrong code here, PROWL_NATIVE is ignored")
    endif()
  endif()
endif()
if(PROWL_SANITIZE)
  target_compile_options(prowl_compile_options INTERFACE -fsanitize=${PROWL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(prowl_compile_options INTERFACE -fsanitize=${PROWL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU) # whose own manual warns of false positives in such builds
    target_compile_options(prowl_compile_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# prowl_define_strings(TARGET NAME VALUE ...): macros that are string literals, in <build_strings.hpp> of the target. As definitions
# on the command line their quotes would not survive nvcc_wrapper.
function(prowl_define_strings target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/strings/${target})
  set(content "#pragma once\n")
  while(ARGN)
    list(POP_FRONT ARGN name value)
    string(APPEND content "#define ${name} \"${value}\"\n")
  endwhile()
  file(GENERATE OUTPUT ${folder}/build_strings.hpp CONTENT "${content}")
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
