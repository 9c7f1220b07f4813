# ration_layer(NAME SOURCES ... HEADERS ... LINKS ...): the static library of one folder of src/.
# LINKS names the layers above it and outside libraries: the include rule, held by targets.

add_library(ration_build_flags INTERFACE)
target_compile_options(ration_build_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wundef -Wextra-semi
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op -Wuseless-cast>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    $<$<BOOL:${RATION_WERROR}>:-Werror>
    # gcc 12 reports these falsely through std::variant and std::string when it optimises; they stay
    # warnings.
    $<$<AND:$<BOOL:${RATION_WERROR}>,$<CXX_COMPILER_ID:GNU>>:-Wno-error=maybe-uninitialized>
    $<$<AND:$<BOOL:${RATION_WERROR}>,$<CXX_COMPILER_ID:GNU>>:-Wno-error=restrict>
    -fvisibility=hidden)
target_compile_definitions(ration_build_flags INTERFACE
    $<$<NOT:$<BOOL:${RATION_BENCHMARKS}>>:_GLIBCXX_ASSERTIONS>)
if(RATION_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
elseif(RATION_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
endif()

if(RATION_FUZZ)
    # Without it libFuzzer is blind: coverage comes from the libraries under test.
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()

function(ration_layer name)
    cmake_parse_arguments(LAYER "" "" "SOURCES;HEADERS;LINKS" ${ARGN})
    add_library(ration_${name} STATIC ${LAYER_SOURCES} ${LAYER_HEADERS})
    target_include_directories(ration_${name} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(ration_${name} PUBLIC ${LAYER_LINKS} PRIVATE $<BUILD_INTERFACE:ration_build_flags>)
    set_target_properties(ration_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
