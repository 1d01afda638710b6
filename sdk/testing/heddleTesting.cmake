# What a plugin is tested with. Part of find_package(heddle), which has set where things are: HEDDLE_PROGRAM, HEDDLE_PLUGINS,
# HEDDLE_TESTING_LIBRARIES, HEDDLE_CONFORMANCE, HEDDLE_FAKE_DEVICES.
#
#   heddle::testing                                heddle/testing/node_runner.hpp
#   heddle::conformance                            heddle/testing/conformance.hpp
#   heddle_test_device(NAME PLUGIN [OPTION...])    a test NAME: the conformance program on a device plugin of this project
#   heddle_run_workflow(NAME FILE PLUGIN... [DEVICE device] [MODELS folder])
#                                                  a test NAME and a target run_NAME: the program runs a workflow with plugins
#                                                  of this project
if(NOT TARGET heddle::testing)
  find_package(Threads REQUIRED)
  add_library(heddle::testing STATIC IMPORTED)
  set_target_properties(heddle::testing PROPERTIES IMPORTED_LOCATION "${HEDDLE_TESTING_LIBRARIES}/libheddle_testing.a")
  target_link_libraries(heddle::testing INTERFACE heddle::engine ${CMAKE_DL_LIBS})
  add_library(heddle::conformance STATIC IMPORTED)
  set_target_properties(heddle::conformance PROPERTIES IMPORTED_LOCATION "${HEDDLE_TESTING_LIBRARIES}/libheddle_conformance.a")
  target_link_libraries(heddle::conformance INTERFACE heddle::sdk Threads::Threads ${CMAKE_DL_LIBS})
endif()

function(heddle_test_device name plugin)
  add_test(NAME ${name} COMMAND "${HEDDLE_CONFORMANCE}" test --plugin $<TARGET_FILE:${plugin}> ${ARGN})
endfunction()

function(heddle_run_workflow name file)
  cmake_parse_arguments(arg "" "DEVICE;MODELS" "" ${ARGN})
  set(options --devices cpu:0)
  if(arg_DEVICE)
    set(options --devices ${arg_DEVICE})
  endif()
  if(arg_MODELS)
    list(APPEND options --models ${arg_MODELS})
  endif()
  foreach(plugin ${arg_UNPARSED_ARGUMENTS})
    list(APPEND options --plugins $<TARGET_FILE_DIR:${plugin}>)
  endforeach()
  list(APPEND options --cache none --output ${CMAKE_CURRENT_BINARY_DIR}/output)
  add_test(NAME ${name} COMMAND "${HEDDLE_PROGRAM}" run ${file} ${options})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT HEDDLE_CHECK_INFER=1) # infer() is held against execute()
  add_custom_target(run_${name} COMMAND "${HEDDLE_PROGRAM}" run ${file} ${options} DEPENDS ${arg_UNPARSED_ARGUMENTS} USES_TERMINAL VERBATIM)
endfunction()
