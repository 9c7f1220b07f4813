# Installs the library into a fresh prefix, builds the consumer against it, runs it.
#   cmake -D BUILD=... -D SOURCE=... -D COMPILER=... -P run.cmake
set(work ${BUILD}/consumer)
file(REMOVE_RECURSE ${work})

function(step)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/build -G Ninja -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${work}/prefix)
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/build/consumer)
step(${work}/build/consumer_client)
execute_process(COMMAND ${work}/build/library_page OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "^(a mail to ana\n)+(again in [1-6] s\n)+$")
    message(FATAL_ERROR "docs/library.md says something else than its program prints: ${printed}")
endif()
# The command and the examples are there too, and work from where they were put.
step(${work}/prefix/bin/ration check ${work}/prefix/share/ration/examples/booking/policy.yaml)
