# Puts into heddle/_prefix of the wheel what `cpack` puts into the tarball, as far as a program needs it: the program, libheddle,
# plugins, the libraries that all of these are linked with, graphs and the model, licences. Not:
#   the plugins of video (FFmpeg is under the GPL) and of shaders (they take the system's OpenGL);
#   the C++ runtime: a process has one, and modules of others may need a later one than ours;
#   Boost.Test, which only the conformance program of the SDK takes;
#   symbolic links, which a wheel cannot hold: a library has the one name that it is asked for.
set(into ${CMAKE_INSTALL_PREFIX}/heddle/_prefix)
set(from ${HEDDLE_PREFIX})
if(HEDDLE_BUILD)
  set(from ${HEDDLE_STAGE})
  file(REMOVE_RECURSE ${from})
  set(components program library bundled)
  if(EXISTS ${HEDDLE_BUILD}/plugins/cuda.so)
    list(APPEND components cuda)
  endif()
  foreach(component ${components})
    execute_process(COMMAND ${CMAKE_COMMAND} --install ${HEDDLE_BUILD} --prefix ${from} --component ${component} --strip
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()

file(GLOB programs ${from}/bin/heddle*)
file(INSTALL ${programs} DESTINATION ${into}/bin USE_SOURCE_PERMISSIONS)
file(INSTALL ${from}/lib/heddle DESTINATION ${into}/lib USE_SOURCE_PERMISSIONS
     PATTERN video.so EXCLUDE PATTERN shader.so EXCLUDE PATTERN heddle_shader EXCLUDE)
file(INSTALL ${from}/share/heddle/graphs DESTINATION ${into}/share/heddle)
if(EXISTS ${from}/share/heddle/licences)
  file(INSTALL ${from}/share/heddle/licences DESTINATION ${into}/share/heddle)
endif()

file(GLOB libraries ${from}/lib/lib*.so*)
list(FILTER libraries EXCLUDE REGEX "/lib(stdc\\+\\+\\.|gcc_s\\.|boost_unit_test)")
foreach(library ${libraries})
  if(NOT IS_SYMLINK ${library})
    execute_process(COMMAND ${READELF} -d ${library} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
    if(NOT dynamic MATCHES "SONAME[^\n]*\\[([^]\n]+)\\]")
      message(FATAL_ERROR "${library} has no soname")
    endif()
    file(COPY_FILE ${library} ${into}/lib/${CMAKE_MATCH_1})
  endif()
endforeach()
