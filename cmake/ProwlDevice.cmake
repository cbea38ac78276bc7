# Which sources meet nvcc: those that include Kokkos, themselves or through headers of this project, since a Kokkos built for
# CUDA accepts no other compiler. All others go to the host's compiler, as nvcc cannot digest every header of the host's.
#
# - With Kokkos's nvcc_wrapper as the compiler, that is the build.
# - With PROWL_KOKKOS_CUDA_INCLUDE (Kokkos's headers alone), the target prowl-device compiles them for Hopper beside the build
#   for the host, and the test device_compile builds that target: shows that they compile; nothing is linked.

# prowl_includes_kokkos(RESULT FILE): sets RESULT in the caller's scope.
function(prowl_includes_kokkos result file)
  get_property(known GLOBAL PROPERTY prowl_includes_kokkos:${file})
  if("${known}" STREQUAL "")
    set(known FALSE)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(folder ${file} DIRECTORY)
    file(STRINGS ${file} includes REGEX "^#include [<\"]")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "^#include [<\"]([^>\"]*).*" "\\1" include "${include}")
      if(include MATCHES "^Kokkos")
        set(known TRUE)
      endif()
      string(REGEX REPLACE "^prowl/" "src/" path ${include})
      foreach(header ${folder}/${include} ${PROJECT_SOURCE_DIR}/${path} ${PROJECT_SOURCE_DIR}/apps/${include})
        if(NOT known AND EXISTS ${header})
          get_filename_component(header ${header} ABSOLUTE) # without ..
          prowl_includes_kokkos(known ${header})
        endif()
      endforeach()
    endforeach()
    set_property(GLOBAL PROPERTY prowl_includes_kokkos:${file} ${known})
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

# What a source's target is compiled with, for nvcc alone; Kokkos Kernels has no headers for CUDA there.
function(prowl_compile_for_device target file)
  set(ours "^(${PROJECT_BINARY_DIR}/include|${PROJECT_SOURCE_DIR}/apps)$")
  set(includes "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>>")
  set(includes "$<FILTER:${includes},EXCLUDE,^/usr/include$>") # naming it would change the order of the compiler's own
  set(definitions "$<FILTER:$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>,EXCLUDE,^PROWL_HAS_KOKKOS_KERNELS$>")
  set(flags -x cu -std=c++20 -arch=sm_90 --extended-lambda -isystem ${PROWL_KOKKOS_CUDA_INCLUDE}
            "-I;$<JOIN:$<FILTER:${includes},INCLUDE,${ours}>,;-I;>"
            "-isystem;$<JOIN:$<FILTER:${includes},EXCLUDE,${ours}>,;-isystem;>" "-D;$<JOIN:${definitions},;-D;>")
  if(PROWL_WERROR)
    # 2810: nvcc takes the value of an assignment to a [[nodiscard]] object for one that is dropped.
    list(APPEND flags --Werror all-warnings --diag-suppress=2810)
  endif()
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${file})
  set(object ${PROJECT_BINARY_DIR}/device/${name}.o)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${PROWL_NVCC} "${flags}" -MD -MF ${object}.d -c ${file} -o ${object}
    DEPENDS ${file} DEPFILE ${object}.d COMMAND_EXPAND_LISTS VERBATIM COMMENT "Compiling ${name} for sm_90")
  set_property(GLOBAL APPEND PROPERTY PROWL_DEVICE_OBJECTS ${object})
endfunction()

# All sources of the targets in `folder` and below, each to its compiler.
function(prowl_sort_sources folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    foreach(source IN LISTS sources)
      get_filename_component(file ${source} ABSOLUTE BASE_DIR ${folder})
      prowl_includes_kokkos(for_nvcc ${file})
      if(PROWL_NVCC_WRAPPER AND NOT for_nvcc)
        set_property(SOURCE ${file} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS --host-only)
      elseif(PROWL_KOKKOS_CUDA_INCLUDE AND for_nvcc AND file MATCHES "^${PROJECT_SOURCE_DIR}/(src|apps)/")
        file(STRINGS ${file} needs_kernels REGEX "PROWL_HAS_KOKKOS_KERNELS")
        if(NOT needs_kernels)
          prowl_compile_for_device(${target} ${file})
        endif()
      endif()
    endforeach()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    prowl_sort_sources(${folder})
  endforeach()
endfunction()

function(prowl_separate_device_code)
  prowl_sort_sources(${PROJECT_SOURCE_DIR})
  if(PROWL_KOKKOS_CUDA_INCLUDE)
    get_property(objects GLOBAL PROPERTY PROWL_DEVICE_OBJECTS)
    add_custom_target(prowl-device DEPENDS ${objects})
    if(PROWL_BUILD_TESTS)
      add_test(NAME device_compile COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target prowl-device)
      set_tests_properties(device_compile PROPERTIES TIMEOUT 1800 RUN_SERIAL TRUE)
    endif()
  endif()
endfunction()

if(PROWL_KOKKOS_CUDA_INCLUDE)
  if(NOT EXISTS ${PROWL_KOKKOS_CUDA_INCLUDE}/Kokkos_Core.hpp)
    message(FATAL_ERROR "PROWL_KOKKOS_CUDA_INCLUDE is ${PROWL_KOKKOS_CUDA_INCLUDE}, but there is no Kokkos_Core.hpp in it")
  endif()
  find_program(PROWL_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT PROWL_NVCC)
    message(FATAL_ERROR "PROWL_KOKKOS_CUDA_INCLUDE is set, but nvcc was not found: set -DPROWL_NVCC=...")
  endif()
endif()
if(CMAKE_CXX_COMPILER MATCHES "nvcc_wrapper$")
  set(PROWL_NVCC_WRAPPER TRUE)
endif()
# At the end of the configuration, when every folder has its targets.
if(PROWL_NVCC_WRAPPER OR PROWL_KOKKOS_CUDA_INCLUDE)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL prowl_separate_device_code)
endif()
