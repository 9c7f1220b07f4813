# ration_test(NAME LABEL label SOURCES ... LINKS ...): one test program, found by ctest.
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

function(ration_test name)
    cmake_parse_arguments(TEST "" "LABEL;TIMEOUT" "SOURCES;LINKS" ${ARGN})
    if(NOT TEST_LABEL)
        set(TEST_LABEL unit)
    endif()
    if(NOT TEST_TIMEOUT)
        set(TEST_TIMEOUT 300)
    endif()
    add_executable(${name} ${TEST_SOURCES})
    target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gtest_main GTest::gmock
        $<BUILD_INTERFACE:ration_build_flags>)
    target_compile_options(${name} PRIVATE -Wno-undef)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE RATION_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT})
endfunction()

# ration_python_test(NAME LABEL label SOURCE file): a program of Python's unittest. It finds the
# command under test in RATION_BINARY.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(ration_python_test name)
    cmake_parse_arguments(TEST "" "LABEL;SOURCE" "" ${ARGN})
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${TEST_SOURCE} --verbose)
    set_tests_properties(${name} PROPERTIES LABELS ${TEST_LABEL} TIMEOUT 300
        ENVIRONMENT "RATION_BINARY=${PROJECT_BINARY_DIR}/ration")
endfunction()
