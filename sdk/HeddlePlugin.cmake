# heddle_add_plugin(NAME source...) builds a node or device plugin: one shared object that exports heddle_entry and
# nothing else, and refuses undefined symbols when it is linked, not when it is loaded.
set(HEDDLE_SDK_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "where this file and plugin.map are")

function(heddle_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  if(TARGET heddle::sdk) # installed
    target_link_libraries(${name} PRIVATE heddle::sdk)
  else()
    target_include_directories(${name} PRIVATE ${HEDDLE_SDK_DIR}/include)
  endif()
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON)
  if(HEDDLE_SANITIZE MATCHES undefined)
    # With these three, g++ 12 takes no address of an object for a constant, and ports are constants made of addresses. Null
    # pointers are still found: by the address sanitizer.
    target_compile_options(${name} PRIVATE -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
  if(NOT HEDDLE_SANITIZE)
    # Sanitizer runtimes are found in the program that loads the plugin.
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
  target_link_options(${name} PRIVATE -Wl,--version-script=${HEDDLE_SDK_DIR}/plugin.map ${HEDDLE_PLUGIN_LINK_OPTIONS})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${HEDDLE_SDK_DIR}/plugin.map)
endfunction()
