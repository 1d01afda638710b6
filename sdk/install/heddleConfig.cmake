# find_package(heddle CONFIG): heddle::sdk has the headers for plugins, heddle::engine is the library for programs that run workflows,
# heddle_add_plugin(NAME SOURCE...) builds a plugin.
include("${CMAKE_CURRENT_LIST_DIR}/heddleTargets.cmake")
# Both are of C++20 where C++ is used at all: heddle/engine.h is C11.
get_property(heddle_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(CXX IN_LIST heddle_languages)
  set_property(TARGET heddle::sdk heddle::engine APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
unset(heddle_languages)
# A bundle has more to say.
include("${CMAKE_CURRENT_LIST_DIR}/heddleBundled.cmake" OPTIONAL)
include("${CMAKE_CURRENT_LIST_DIR}/HeddlePlugin.cmake")
# What plugins are tested with.
include("${CMAKE_CURRENT_LIST_DIR}/heddleTestingPaths.cmake" OPTIONAL)
