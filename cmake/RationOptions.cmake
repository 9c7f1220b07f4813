# What is built, and how strictly.
option(RATION_TOOLS "The ration command: gateway, workbench" ${PROJECT_IS_TOP_LEVEL})
option(RATION_TESTS "Tests" ${PROJECT_IS_TOP_LEVEL})
option(RATION_BENCHMARKS "Benchmarks" OFF)
option(RATION_FUZZ "libFuzzer targets (clang); without it the corpora run as plain tests" OFF)
option(RATION_WERROR "Warnings are errors" OFF)
set(RATION_SANITIZE "" CACHE STRING "address, thread or empty")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})

find_program(RATION_CCACHE ccache)
if(RATION_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # One cache for all build folders and checkouts: neither their names nor the time of a precompiled
    # header makes a different object.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${RATION_CCACHE})
endif()
