# Kokkos::kokkos, and Kokkos::kokkoskernels where there is one (PROWL_HAS_KOKKOS_KERNELS).
#
# Debian 12 ships Kokkos 3.4 inside Trilinos: its CMake package names an include folder that is not there and defines no
# Kokkos::kokkoskernels. Where the found package is that one, correct targets are made here. Installed beside
# prowlConfig.cmake, so that users of an installed Prowl get the same.
find_package(Kokkos QUIET)
find_package(KokkosKernels QUIET)

if(TARGET trilinos_kokkoscore OR NOT Kokkos_FOUND)
  find_path(PROWL_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos)
  find_library(PROWL_KOKKOS_CORE trilinos_kokkoscore)
  if(PROWL_KOKKOS_INCLUDE AND PROWL_KOKKOS_CORE)
    add_library(prowl_trilinos_kokkos INTERFACE IMPORTED GLOBAL)
    set_target_properties(prowl_trilinos_kokkos PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${PROWL_KOKKOS_INCLUDE}"
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${PROWL_KOKKOS_INCLUDE}"
      INTERFACE_LINK_LIBRARIES "${PROWL_KOKKOS_CORE};${CMAKE_DL_LIBS}")
    set(PROWL_KOKKOS_TARGET prowl_trilinos_kokkos)
    set(Kokkos_FOUND TRUE)
    find_library(PROWL_KOKKOS_KERNELS trilinos_kokkoskernels)
    find_path(PROWL_KOKKOS_KERNELS_INCLUDE KokkosBlas3_gemm.hpp HINTS ${PROWL_KOKKOS_INCLUDE} PATH_SUFFIXES trilinos)
    if(PROWL_KOKKOS_KERNELS AND PROWL_KOKKOS_KERNELS_INCLUDE)
      add_library(prowl_trilinos_kokkos_kernels INTERFACE IMPORTED GLOBAL)
      set_target_properties(prowl_trilinos_kokkos_kernels PROPERTIES
        INTERFACE_LINK_LIBRARIES "prowl_trilinos_kokkos;${PROWL_KOKKOS_KERNELS}")
      set(PROWL_KOKKOS_KERNELS_TARGET prowl_trilinos_kokkos_kernels)
    endif()
  endif()
elseif(Kokkos_FOUND)
  set(PROWL_KOKKOS_TARGET Kokkos::kokkos)
  if(KokkosKernels_FOUND AND TARGET Kokkos::kokkoskernels)
    set(PROWL_KOKKOS_KERNELS_TARGET Kokkos::kokkoskernels)
  endif()
endif()

if(NOT PROWL_KOKKOS_TARGET)
  message(FATAL_ERROR "Kokkos not found. Debian 12: apt-get install libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev (or run cmake/install-deps.sh). Elsewhere: -DKokkos_ROOT=...")
endif()
