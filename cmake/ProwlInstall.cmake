# Installs the library as a CMake package: find_package(prowl) gives prowl::prowl. The apps install themselves.
include(CMakePackageConfigHelpers)
set(prowl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/prowl)

install(TARGETS prowl EXPORT prowlTargets)
install(EXPORT prowlTargets NAMESPACE prowl:: DESTINATION ${prowl_cmake_dir})
# Public headers include some of those in detail/, so all go.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/prowl
        FILES_MATCHING PATTERN "*.hpp")

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/prowlConfig.cmake.in ${PROJECT_BINARY_DIR}/prowlConfig.cmake
                              INSTALL_DESTINATION ${prowl_cmake_dir})
# Before 1.0 a minor version may change interfaces.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/prowlConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/prowlConfig.cmake ${PROJECT_BINARY_DIR}/prowlConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/ProwlDependencies.cmake ${CMAKE_CURRENT_LIST_DIR}/ProwlKokkos.cmake
        DESTINATION ${prowl_cmake_dir})
# The build tree is a package too (-Dprowl_ROOT=BUILD).
export(EXPORT prowlTargets NAMESPACE prowl:: FILE ${PROJECT_BINARY_DIR}/prowlTargets.cmake)
configure_file(${CMAKE_CURRENT_LIST_DIR}/ProwlDependencies.cmake ${PROJECT_BINARY_DIR}/ProwlDependencies.cmake COPYONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/ProwlKokkos.cmake ${PROJECT_BINARY_DIR}/ProwlKokkos.cmake COPYONLY)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
