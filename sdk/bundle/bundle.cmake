# `cpack` makes heddle-VERSION-linux-PROCESSOR.tar.gz: the program, its plugins and graphs as they stand beside each other in a
# build folder, the SDK, and in lib/ every library that they are linked with, but glibc. It needs a complete build.
#
# The C++ runtime is among them: small containers have none, and a Python environment may put an older one before the system's.
# What is in lib/ is found by DT_RPATH because that, other than DT_RUNPATH, holds for what those libraries need themselves, too,
# and comes before LD_LIBRARY_PATH. Plugins that are built against the bundle bring a C++ runtime of their own (heddleConfig.cmake),
# so their compiler may be newer than ours.
set(bundle_plugins core encoders denoisers samplers vae upscalers image cpu)
if(TARGET cuda)
  list(APPEND bundle_plugins cuda)
endif()
set(bundle_targets heddle heddle_worker libheddle ${bundle_plugins})
set_target_properties(${bundle_targets} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON
                                                   INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(heddle heddle_worker PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
foreach(target ${bundle_targets})
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()

install(TARGETS ${bundle_plugins} RUNTIME_DEPENDENCY_SET bundle LIBRARY DESTINATION plugins)
install(TARGETS heddle heddle_worker libheddle RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION . LIBRARY DESTINATION lib)
install(RUNTIME_DEPENDENCY_SET bundle PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread))\\.so" DESTINATION lib)
install(DIRECTORY graphs DESTINATION . PATTERN diffusion_models EXCLUDE) # what tests draw there
install(DIRECTORY sdk DESTINATION . PATTERN heddleConfig.cmake EXCLUDE PATTERN bundle EXCLUDE)
install(FILES sdk/bundle/heddle.service sdk/bundle/Containerfile DESTINATION sdk/bundle)
install(FILES README.md DESTINATION .)
# Of what is compiled into the encoders plugin.
install(FILES plugins/encoders/vocabularies/README.md plugins/encoders/vocabularies/LICENCE-MIT plugins/encoders/vocabularies/LICENCE-Apache-2.0
        DESTINATION licences/vocabularies)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(heddleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES sdk/heddleConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heddleConfigVersion.cmake DESTINATION lib/cmake/heddle)
install(SCRIPT sdk/bundle/licences.cmake)

set(CPACK_GENERATOR TGZ)
string(TOLOWER "heddle-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)
set(CPACK_STRIP_FILES ON)
include(CPack)
