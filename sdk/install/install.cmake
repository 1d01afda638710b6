# `cmake --install`: folders as GNUInstallDirs has them. Plugins are in lib/heddle/plugins wherever libraries go: libheddle and the
# program look there from where they stand themselves (engine/facade/layout.cpp), so an installed heddle may be moved as a whole.
#
# Components: program, library (with the plugins that everybody needs, graphs and the model), video, shader and cuda (a plugin each),
# development (headers, CMake, pkg-config), and `bundled` (sdk/bundle), which is only put in when it is asked for.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(HEDDLE_PLUGIN_DIR lib/heddle/plugins)
set(HEDDLE_DATA_DIR ${CMAKE_INSTALL_DATADIR}/heddle)
set(heddle_plugins core encoders denoisers detection samplers vae upscalers image cpu)

# How to get from one folder of the prefix to another.
function(heddle_way result from to)
  file(RELATIVE_PATH way "/prefix/${from}" "/prefix/${to}")
  string(REGEX REPLACE "/$" "" way "${way}")
  set(${result} "${way}" PARENT_SCOPE)
endfunction()

# Libraries are looked for in the lib/ of the same prefix first. By DT_RPATH, because that, other than DT_RUNPATH, holds for what those
# libraries need themselves, too, and comes before LD_LIBRARY_PATH.
function(heddle_rpath target folder)
  heddle_way(way "${folder}" "${CMAKE_INSTALL_LIBDIR}")
  string(REGEX REPLACE "/$" "" rpath "$ORIGIN/${way}")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${rpath}" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endfunction()

# heddle_install_plugin(TARGET COMPONENT [RUNTIME_DEPENDENCY_SET bundle]): the latter where a bundle has it, too.
function(heddle_install_plugin target component)
  heddle_rpath(${target} ${HEDDLE_PLUGIN_DIR})
  install(TARGETS ${target} ${ARGN} LIBRARY DESTINATION ${HEDDLE_PLUGIN_DIR} COMPONENT ${component})
endfunction()

foreach(plugin ${heddle_plugins})
  heddle_install_plugin(${plugin} library RUNTIME_DEPENDENCY_SET bundle)
endforeach()
if(TARGET cuda)
  heddle_install_plugin(cuda cuda RUNTIME_DEPENDENCY_SET bundle)
endif()
# They open what the system has of FFmpeg and OpenGL: no bundle has these.
if(TARGET video)
  heddle_install_plugin(video video)
endif()
if(TARGET shader)
  heddle_install_plugin(shader shader)
  heddle_rpath(heddle_shader ${HEDDLE_PLUGIN_DIR})
  install(TARGETS heddle_shader RUNTIME DESTINATION ${HEDDLE_PLUGIN_DIR} COMPONENT shader)
endif()

heddle_rpath(heddle ${CMAKE_INSTALL_BINDIR})
install(TARGETS heddle RUNTIME_DEPENDENCY_SET bundle RUNTIME COMPONENT program)

# What isolated plugins run in: libheddle starts it, nobody else.
heddle_rpath(heddle_worker lib/heddle)
install(TARGETS heddle_worker RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION lib/heddle COMPONENT library)
# The same of packs of nodes in Python.
install(DIRECTORY sdk/python_nodes DESTINATION lib/heddle COMPONENT library PATTERN __pycache__ EXCLUDE)

# Until 1.0 each minor version is another library to programs that were built with it.
heddle_rpath(libheddle ${CMAKE_INSTALL_LIBDIR})
set_target_properties(libheddle PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                                           EXPORT_NAME engine LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/libheddle.map)
target_link_options(libheddle PRIVATE -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/libheddle.map)
install(TARGETS libheddle EXPORT heddle RUNTIME_DEPENDENCY_SET bundle LIBRARY COMPONENT library NAMELINK_COMPONENT development)

# The program as scripts and services know it, its graphs and the model.
install(DIRECTORY graphs DESTINATION ${HEDDLE_DATA_DIR} COMPONENT library PATTERN diffusion_models EXCLUDE) # what tests draw there
install(FILES sdk/serve/nginx.conf sdk/serve/grafana.json sdk/bundle/heddle.service sdk/bundle/Containerfile
        DESTINATION ${HEDDLE_DATA_DIR}/serve COMPONENT program)
# Documents, and what they link to.
foreach(document README.md graphs/README.md plugins/README.md plugins/cuda/README.md plugins/denoisers/README.md sdk/README.md sdk/install/README.md engine/README.md engine/place/README.md
                 engine/memory/README.md engine/serve/README.md engine/isolate/README.md sdk/abi/README.md sdk/guide/README.md sdk/guide/models/README.md
                 sdk/guide/family/README.md sdk/guide/host/README.md sdk/guide/steps/README.md sdk/guide/python/README.md sdk/python/README.md plugins/cuda/NOTES.md
                 plugins/encoders/vocabularies/README.md graphs/models/diffusers/tiny-scenes/README.md tests/README.md tests/engine/serve/README.md
                 engine/serve/v1_openapi.json sdk/serve/nginx.conf sdk/serve/grafana.json sdk/bundle/heddle.service sdk/bundle/Containerfile)
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT program)
endforeach()
install(DIRECTORY graphs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING PATTERN "*.png" PATTERN "*.svg" PATTERN "*.webp" PATTERN models EXCLUDE)
# The man page and what shells complete, made of the program's help. zsh of Debian looks into a folder of its own.
set(manual ${CMAKE_BINARY_DIR}/manual)
set(manual_files ${manual}/heddle.1 ${manual}/heddle.bash ${manual}/_heddle ${manual}/heddle.fish)
add_custom_command(OUTPUT ${manual_files} COMMAND ${CMAKE_CURRENT_LIST_DIR}/manual.sh $<TARGET_FILE:heddle> ${PROJECT_VERSION} ${manual}
                   DEPENDS heddle ${CMAKE_CURRENT_LIST_DIR}/manual.sh VERBATIM)
if(NOT HEDDLE_SANITIZE)
  add_custom_target(manual ALL DEPENDS ${manual_files})
endif()
install(FILES ${manual}/heddle.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${manual}/heddle.bash RENAME heddle DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
foreach(folder site-functions vendor-completions)
  install(FILES ${manual}/_heddle DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${folder} COMPONENT program)
endforeach()
install(FILES ${manual}/heddle.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
# Of what is compiled into the encoders plugin.
install(FILES plugins/encoders/vocabularies/README.md plugins/encoders/vocabularies/LICENCE-MIT plugins/encoders/vocabularies/LICENCE-Apache-2.0
        DESTINATION ${HEDDLE_DATA_DIR}/licences/vocabularies COMPONENT library)

# The SDK.
add_library(heddle_sdk INTERFACE)
set_target_properties(heddle_sdk PROPERTIES EXPORT_NAME sdk)
target_include_directories(heddle_sdk INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS heddle_sdk EXPORT heddle COMPONENT development)
install(DIRECTORY sdk/include/heddle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)
install(EXPORT heddle NAMESPACE heddle:: FILE heddleTargets.cmake DESTINATION ${cmake_dir} COMPONENT development)
write_basic_package_version_file(heddleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES sdk/install/heddleConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heddleConfigVersion.cmake sdk/HeddlePlugin.cmake sdk/plugin.map
        DESTINATION ${cmake_dir} COMPONENT development)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
heddle_way(HEDDLE_PREFIX_FROM_PC ${pc_dir} "")
foreach(name heddle heddle-sdk)
  configure_file(sdk/install/${name}.pc.in ${CMAKE_BINARY_DIR}/generated/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/${name}.pc DESTINATION ${pc_dir} COMPONENT development)
endforeach()
