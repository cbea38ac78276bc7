# Which sources meet nvcc, in the two ways to build with it.
#
# 1. With Kokkos's nvcc_wrapper as the compiler, those that include Kokkos, themselves or through headers of this project:
# Kokkos's headers accept no other compiler. All others go to the host's compiler, since nvcc's front end cannot digest
# every header of the host's libraries.
#
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

function(prowl_keep_from_nvcc folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    foreach(source IN LISTS sources)
      get_filename_component(file ${source} ABSOLUTE BASE_DIR ${folder})
      prowl_includes_kokkos(for_nvcc ${file})
      if(NOT for_nvcc)
        set_property(SOURCE ${file} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS --host-only)
      endif()
    endforeach()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    prowl_keep_from_nvcc(${folder})
  endforeach()
endfunction()

# At the end of the configuration, when every folder has its targets.
if(CMAKE_CXX_COMPILER MATCHES "nvcc_wrapper$")
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL prowl_keep_from_nvcc ${PROJECT_SOURCE_DIR})
endif()

# 2. Without a Kokkos built for CUDA, only its headers, every device translation unit compiles for Hopper, which shows that the
# device code compiles where no GPU is; nothing is linked.
#
# prowl_device_sources(FILE...): names the caller's files that hold kernels. With PROWL_KOKKOS_CUDA_INCLUDE set, the
# target prowl-device compiles them all (only that: nothing is linked), and the test device_compile builds that target.
function(prowl_device_sources)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY PROWL_DEVICE_SOURCES ${source})
  endforeach()
endfunction()

function(prowl_add_device_target)
  if(NOT EXISTS ${PROWL_KOKKOS_CUDA_INCLUDE}/Kokkos_Core.hpp)
    message(FATAL_ERROR "PROWL_KOKKOS_CUDA_INCLUDE is ${PROWL_KOKKOS_CUDA_INCLUDE}, but there is no Kokkos_Core.hpp in it")
  endif()
  find_program(PROWL_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT PROWL_NVCC)
    message(FATAL_ERROR "PROWL_KOKKOS_CUDA_INCLUDE is set, but nvcc was not found: set -DPROWL_NVCC=...")
  endif()

  set(flags -x cu -std=c++20 -arch=sm_90 --extended-lambda --expt-relaxed-constexpr
            -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX
            -isystem ${PROWL_KOKKOS_CUDA_INCLUDE} -I ${PROJECT_BINARY_DIR}/include -I ${PROJECT_SOURCE_DIR}/apps)
  foreach(folder IN LISTS MPI_CXX_INCLUDE_DIRS)
    list(APPEND flags -isystem ${folder})
  endforeach()
  if(PROWL_WERROR)
    list(APPEND flags --Werror all-warnings)
  endif()

  get_property(sources GLOBAL PROPERTY PROWL_DEVICE_SOURCES)
  set(objects)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    set(object ${PROJECT_BINARY_DIR}/device/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${PROWL_NVCC} ${flags} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Compiling ${name} for sm_90")
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(prowl-device DEPENDS ${objects})
  if(PROWL_BUILD_TESTS)
    add_test(NAME device_compile COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target prowl-device)
    set_tests_properties(device_compile PROPERTIES TIMEOUT 1800 RUN_SERIAL TRUE)
  endif()
endfunction()

# At the end of the configuration, when every folder has named its files.
if(PROWL_KOKKOS_CUDA_INCLUDE)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL prowl_add_device_target)
endif()
