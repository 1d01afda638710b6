# `cpack` makes heddle-VERSION-linux-PROCESSOR.tar.gz of what is installed (sdk/install), and in lib/ every library that it is linked
# with, but glibc. It needs a complete build. FFmpeg is under the GPL, and OpenGL is the system's: the plugins of both are left out.
#
# The C++ runtime is among the libraries: small containers have none, and a Python environment may put an older one before the
# system's. Plugins that are built against the bundle bring a C++ runtime of their own (heddleBundled.cmake), so their compiler may
# be newer than ours.
install(RUNTIME_DEPENDENCY_SET bundle PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread))\\.so"
        DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT bundled EXCLUDE_FROM_ALL)
install(FILES sdk/bundle/heddleBundled.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heddle COMPONENT bundled EXCLUDE_FROM_ALL)
install(CODE "set(HEDDLE_LICENCES ${HEDDLE_DATA_DIR}/licences)\nset(HEDDLE_LIBRARIES ${CMAKE_INSTALL_LIBDIR})" COMPONENT bundled EXCLUDE_FROM_ALL)
install(SCRIPT sdk/bundle/licences.cmake COMPONENT bundled EXCLUDE_FROM_ALL)
