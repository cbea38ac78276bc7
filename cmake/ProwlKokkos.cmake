# PROWL_KOKKOS_TARGET, and PROWL_KOKKOS_KERNELS_TARGET where there is Kokkos Kernels: the targets to link to.
#
# They are Kokkos::kokkos and Kokkos::kokkoskernels, except on Debian 12. That ships Kokkos 3.4 inside Trilinos: its CMake
# package names an include folder that is not there and defines no Kokkos::kokkoskernels. Where the found package is that
# one, correct targets are made here. Installed beside prowlConfig.cmake, so that users of an installed Prowl get the same.
# -DCMAKE_DISABLE_FIND_PACKAGE_KokkosKernels=ON builds without Kokkos Kernels.
find_package(Kokkos QUIET)
find_package(KokkosKernels QUIET)

if(TARGET trilinos_kokkoscore OR NOT Kokkos_FOUND)
  find_path(PROWL_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos)
  find_library(PROWL_KOKKOS_CORE trilinos_kokkoscore)
  if(PROWL_KOKKOS_INCLUDE AND PROWL_KOKKOS_CORE)
    if(NOT TARGET prowl_trilinos_kokkos)
      add_library(prowl_trilinos_kokkos INTERFACE IMPORTED GLOBAL)
      set_target_properties(prowl_trilinos_kokkos PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${PROWL_KOKKOS_INCLUDE}"
        INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${PROWL_KOKKOS_INCLUDE}"
        INTERFACE_LINK_LIBRARIES "${PROWL_KOKKOS_CORE};${CMAKE_DL_LIBS}")
    endif()
    set(PROWL_KOKKOS_TARGET prowl_trilinos_kokkos)
    set(Kokkos_FOUND TRUE)
    if(NOT CMAKE_DISABLE_FIND_PACKAGE_KokkosKernels)
      find_library(PROWL_KOKKOS_KERNELS trilinos_kokkoskernels)
      find_path(PROWL_KOKKOS_KERNELS_INCLUDE KokkosBlas3_gemm.hpp HINTS ${PROWL_KOKKOS_INCLUDE} PATH_SUFFIXES trilinos)
    endif()
    if(PROWL_KOKKOS_KERNELS AND PROWL_KOKKOS_KERNELS_INCLUDE)
      if(NOT TARGET prowl_trilinos_kokkos_kernels)
        add_library(prowl_trilinos_kokkos_kernels INTERFACE IMPORTED GLOBAL)
        set_target_properties(prowl_trilinos_kokkos_kernels PROPERTIES
          INTERFACE_LINK_LIBRARIES "prowl_trilinos_kokkos;${PROWL_KOKKOS_KERNELS}")
      endif()
      set(PROWL_KOKKOS_KERNELS_TARGET prowl_trilinos_kokkos_kernels)
    endif()
  endif()
else()
  set(PROWL_KOKKOS_TARGET Kokkos::kokkos)
  if(KokkosKernels_FOUND AND TARGET Kokkos::kokkoskernels)
    set(PROWL_KOKKOS_KERNELS_TARGET Kokkos::kokkoskernels)
  endif()
endif()

# Debian's package for the message where there is none: Trilinos's in Debian 12, Kokkos's own since.
set(PROWL_KOKKOS_PACKAGE "libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev (Debian 12) or libkokkos-dev (later)")
