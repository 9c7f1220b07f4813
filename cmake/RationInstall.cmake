# What `cmake --install` puts where, and the package that find_package(ration) finds:
#   ration::ration    the library: include/ration, the pure limits, the counters
#   ration::client    the retrying HTTP client; find_package(ration COMPONENTS client), needs libcurl
# The `ration` command and the examples come along when they were built.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(ration_library INTERFACE)
set_target_properties(ration_library PROPERTIES EXPORT_NAME ration)
target_link_libraries(ration_library INTERFACE ration_counters)
target_compile_features(ration_library INTERFACE cxx_std_20)
add_library(ration::ration ALIAS ration_library)

set(RATION_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ration)
install(TARGETS ration_library ration_public ration_base ration_limits ration_net ration_wire ration_counters
    EXPORT rationTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT rationTargets NAMESPACE ration:: DESTINATION ${RATION_PACKAGE_DIR} COMPONENT library)
set_target_properties(ration_client PROPERTIES EXPORT_NAME client)
target_compile_features(ration_client INTERFACE cxx_std_20)
add_library(ration::client ALIAS ration_client)
install(TARGETS ration_client EXPORT rationClientTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT rationClientTargets NAMESPACE ration:: DESTINATION ${RATION_PACKAGE_DIR} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rationConfig.cmake.in
    ${PROJECT_BINARY_DIR}/rationConfig.cmake INSTALL_DESTINATION ${RATION_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rationConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rationConfig.cmake ${PROJECT_BINARY_DIR}/rationConfigVersion.cmake
    DESTINATION ${RATION_PACKAGE_DIR} COMPONENT library)

if(RATION_TOOLS)
    install(TARGETS ration DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
    install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/ration COMPONENT tools
        USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
endif()
