# find_package(heddle) in an unpacked bundle: heddle_add_plugin() for plugins, and heddle::heddle for programs that embed the engine.
get_filename_component(heddle_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
# The C++ runtime of the bundle may be older than the compiler that is used now.
set(HEDDLE_PLUGIN_LINK_OPTIONS -static-libstdc++ -static-libgcc)
include("${heddle_root}/sdk/HeddlePlugin.cmake")
if(NOT TARGET heddle::heddle)
  add_library(heddle::heddle SHARED IMPORTED)
  set_target_properties(heddle::heddle PROPERTIES IMPORTED_LOCATION "${heddle_root}/lib/libheddle.so"
                        INTERFACE_INCLUDE_DIRECTORIES "${heddle_root}/sdk/include" INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
