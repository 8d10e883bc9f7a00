# cmake -D BUILD=build/release -D SOURCE=tests/programs/consumer -D WORK=folder -P test_install.cmake
# Installs the library into WORK, builds the consumer against it and runs that.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component library)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -D CMAKE_BUILD_TYPE=Debug -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
file(REMOVE_RECURSE ${WORK})
if(NOT output STREQUAL "rank 3 of 64, 768 wide\n")
  message(FATAL_ERROR "the consumer said: ${output}")
endif()
