# Run by ctest (test/install/CMakeLists.txt). The prefix is new each time, and moved after the install: the package may
# not depend on where it was installed, nor on the build tree.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit status ${status}: ${command}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)
if(EXISTS ${WORK}/prefix/bin/prowl-plan) # and what it reads
  step(${WORK}/prefix/bin/prowl-plan ${SOURCE}/../../../inputs/mmdit-1.3b.toml --ranks 256
       --hardware ${WORK}/prefix/share/prowl/hardware/h100-nvlink-ib.toml)
  if(NOT EXISTS ${WORK}/prefix/share/prowl/plot_plan.py)
    message(FATAL_ERROR "plot_plan.py is not installed")
  endif()
endif()
file(GLOB_RECURSE cmake_files ${WORK}/prefix/*.cmake)
foreach(cmake_file IN LISTS cmake_files)
  file(STRINGS ${cmake_file} leaks REGEX "${BUILD}/(src|apps|include)")
  if(leaks)
    message(FATAL_ERROR "${cmake_file} names the build tree: ${leaks}")
  endif()
endforeach()

# outside(NAME PROJECT GENERATOR OPTION...): a user's project, which has no language but C++.
function(outside name project generator)
  set(configure ${CMAKE_COMMAND} -S ${project} -B ${WORK}/${name} -G ${generator} -DCMAKE_BUILD_TYPE=${CONFIG}
    -DCMAKE_CXX_COMPILER=${CXX} ${ARGN})
  if(FLAGS)
    list(APPEND configure -DCMAKE_CXX_FLAGS=${FLAGS})
  endif()
  step(${configure})
  file(STRINGS ${WORK}/${name}/CMakeCache.txt languages REGEX "^CMAKE_C_COMPILER:")
  if(languages)
    message(FATAL_ERROR "find_package(prowl) enabled the language C in ${project}")
  endif()
  step(${CMAKE_COMMAND} --build ${WORK}/${name})
endfunction()

# The prefix by its variable and by the search path; the build tree, for another generator and a project of C++17.
set(example ${SOURCE}/../../../apps/example)
outside(outside ${SOURCE} ${GENERATOR} -Dprowl_ROOT=${WORK}/prefix "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}")
outside(example ${example} ${GENERATOR} "-DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX_PATH}")
find_program(make make)
if(make)
  outside(build-tree ${example} "Unix Makefiles" -Dprowl_ROOT=${BUILD} "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}"
          -DCMAKE_CXX_STANDARD=17)
  step(${WORK}/build-tree/example)
endif()
step(${WORK}/outside/outside)
step(${WORK}/outside/example)
foreach(ranks 1 3)
  step(${MPIEXEC} ${ranks} ${WORK}/example/example)
endforeach()

# The README shows the example as it is, indented by four.
file(READ ${SOURCE}/example.cpp example)
string(REGEX REPLACE "\n([^\n])" "\n    \\1" example "    ${example}")
file(READ ${SOURCE}/../../../README.md readme)
string(FIND "${readme}" "${example}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "README.md does not show ${SOURCE}/example.cpp as it is")
endif()
