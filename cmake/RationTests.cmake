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
