# Flags of the project's own targets. Linked privately, so that none reaches a user's code.
add_library(prowl_compile_options INTERFACE)
# No function here reads errno of a mathematical one; without it, loops with square roots vectorise.
target_compile_options(prowl_compile_options INTERFACE -Wall -Wextra -Wshadow -Wpedantic -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(prowl_compile_options INTERFACE -Wno-restrict) # false positives on string +, GCC bug 105651
endif()
if(PROWL_WERROR)
  target_compile_options(prowl_compile_options INTERFACE -Werror)
endif()
if(PROWL_NATIVE)
  target_compile_options(prowl_compile_options INTERFACE -march=native)
endif()
if(PROWL_SANITIZE)
  target_compile_options(prowl_compile_options INTERFACE -fsanitize=${PROWL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(prowl_compile_options INTERFACE -fsanitize=${PROWL_SANITIZE})
endif()
