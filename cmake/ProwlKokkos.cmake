# PROWL_KOKKOS_TARGET, and PROWL_KOKKOS_KERNELS_TARGET where there is Kokkos Kernels: the targets to link to.
#
# They are Kokkos::kokkos and Kokkos::kokkoskernels, except where Debian's CMake files are broken; there correct targets
# are made here:
# - Debian 12 ships Kokkos 3.4 inside Trilinos. Its CMake package names an include folder that is not there and defines no
#   Kokkos::kokkoskernels.
# - libkokkos-dev 5.2 names static libraries that the package does not hold, so that find_package(Kokkos) stops CMake.
# Installed beside prowlConfig.cmake, so that users of an installed Prowl get the same.
# -DCMAKE_DISABLE_FIND_PACKAGE_KokkosKernels=ON builds without Kokkos Kernels.

# prowl_kokkos_by_hand(TARGET INCLUDE LIBRARIES...): a target for headers and libraries that no CMake package describes.
function(prowl_kokkos_by_hand target include)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${ARGN};${CMAKE_DL_LIBS}"
      INTERFACE_INCLUDE_DIRECTORIES "${include}" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${include}")
  endif()
endfunction()

# The libkokkos-dev whose CMake files name a library that is not there, unless another Kokkos is asked for.
find_library(PROWL_KOKKOS_SHARED kokkoscore)
if(PROWL_KOKKOS_SHARED AND NOT Kokkos_ROOT AND NOT DEFINED ENV{Kokkos_ROOT})
  get_filename_component(prowl_kokkos_lib ${PROWL_KOKKOS_SHARED} DIRECTORY)
  if(NOT Kokkos_DIR OR Kokkos_DIR STREQUAL "${prowl_kokkos_lib}/cmake/Kokkos")
    file(GLOB prowl_kokkos_exports ${prowl_kokkos_lib}/cmake/Kokkos/KokkosTargets-*.cmake)
    foreach(prowl_kokkos_export IN LISTS prowl_kokkos_exports)
      file(STRINGS ${prowl_kokkos_export} prowl_kokkos_static REGEX "/libkokkosalgorithms\\.a")
      if(prowl_kokkos_static AND NOT EXISTS ${prowl_kokkos_lib}/libkokkosalgorithms.a)
        set(PROWL_KOKKOS_BROKEN TRUE)
      endif()
    endforeach()
  endif()
endif()

if(PROWL_KOKKOS_BROKEN)
  find_path(PROWL_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES kokkos)
  find_library(PROWL_KOKKOS_CONTAINERS kokkoscontainers)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(PROWL_KOKKOS_INCLUDE AND PROWL_KOKKOS_CONTAINERS AND OpenMP_CXX_FOUND)
    prowl_kokkos_by_hand(prowl_kokkos ${PROWL_KOKKOS_INCLUDE} ${PROWL_KOKKOS_CONTAINERS} ${PROWL_KOKKOS_SHARED}
                         OpenMP::OpenMP_CXX)
    set(PROWL_KOKKOS_TARGET prowl_kokkos)
  endif()
else()
  find_package(Kokkos QUIET)
  find_package(KokkosKernels QUIET)
  if(Kokkos_FOUND AND NOT TARGET trilinos_kokkoscore)
    set(PROWL_KOKKOS_TARGET Kokkos::kokkos)
    if(KokkosKernels_FOUND AND TARGET Kokkos::kokkoskernels)
      set(PROWL_KOKKOS_KERNELS_TARGET Kokkos::kokkoskernels)
    endif()
  else()
    find_path(PROWL_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos)
    find_library(PROWL_KOKKOS_CORE trilinos_kokkoscore)
    if(PROWL_KOKKOS_INCLUDE AND PROWL_KOKKOS_CORE)
      prowl_kokkos_by_hand(prowl_trilinos_kokkos ${PROWL_KOKKOS_INCLUDE} ${PROWL_KOKKOS_CORE})
      set(PROWL_KOKKOS_TARGET prowl_trilinos_kokkos)
      if(NOT CMAKE_DISABLE_FIND_PACKAGE_KokkosKernels)
        find_library(PROWL_KOKKOS_KERNELS trilinos_kokkoskernels)
        find_path(PROWL_KOKKOS_KERNELS_INCLUDE KokkosBlas3_gemm.hpp HINTS ${PROWL_KOKKOS_INCLUDE} PATH_SUFFIXES trilinos)
        if(PROWL_KOKKOS_KERNELS AND PROWL_KOKKOS_KERNELS_INCLUDE)
          prowl_kokkos_by_hand(prowl_trilinos_kokkos_kernels ${PROWL_KOKKOS_KERNELS_INCLUDE} ${PROWL_KOKKOS_KERNELS}
                               prowl_trilinos_kokkos)
          set(PROWL_KOKKOS_KERNELS_TARGET prowl_trilinos_kokkos_kernels)
        endif()
      endif()
    endif()
  endif()
endif()

# Debian's package for the message where there is none: Trilinos's in Debian 12, Kokkos's own since.
set(PROWL_KOKKOS_PACKAGE "libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev (Debian 12) or libkokkos-dev (later)")
