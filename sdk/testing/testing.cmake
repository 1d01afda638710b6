# What plugins are tested with, here and by their authors: heddle_testing (one node, by the engine), heddle_conformance (the ops of
# a device as a library), and in lib/heddle/testing the conformance program with its goldens and the fake devices.
file(GLOB conformance_sources CONFIGURE_DEPENDS sdk/testing/conformance/*.cpp)
add_library(heddle_conformance STATIC ${conformance_sources})
target_include_directories(heddle_conformance PUBLIC ${CMAKE_SOURCE_DIR}/sdk/include ${CMAKE_SOURCE_DIR}/sdk/testing/conformance)
target_link_libraries(heddle_conformance PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
add_library(heddle_testing STATIC sdk/testing/node_runner.cpp)
target_link_libraries(heddle_testing PUBLIC libheddle PRIVATE ${CMAKE_DL_LIBS})
# Their mini host has structs of the engine's names: nothing of either may stand for the other's.
set_target_properties(heddle_conformance heddle_testing PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
set(testing_options -O1)
if(HEDDLE_SANITIZE MATCHES undefined) # it is looked for in what is tested
  list(APPEND testing_options -fno-sanitize=undefined)
endif()
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_conformance PRIVATE ${testing_options})
endif()

find_package(Boost 1.81 QUIET COMPONENTS unit_test_framework)
if(TARGET Boost::unit_test_framework)
  file(GLOB conformance_sources CONFIGURE_DEPENDS tests/conformance/*.cpp)
  add_executable(conformance ${conformance_sources})
  set_target_properties(conformance PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests UNITY_BUILD_BATCH_SIZE 5)
  target_include_directories(conformance PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/sdk/include)
  target_include_directories(conformance SYSTEM PRIVATE ${RAPIDJSON_INCLUDE_DIRS})
  target_compile_definitions(conformance PRIVATE BOOST_TEST_DYN_LINK)
  target_compile_options(conformance PRIVATE ${testing_options} $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  target_link_libraries(conformance PRIVATE heddle_conformance Boost::unit_test_framework)
  foreach(goldens goldens blocks attention_fp8) # which the program finds beside itself
    configure_file(tests/conformance/${goldens}.safetensors ${CMAKE_BINARY_DIR}/tests/${goldens}.safetensors COPYONLY)
  endforeach()
else()
  message(STATUS "the conformance program is left out: Boost.Test is not found (libboost-test-dev)")
endif()

# find_package(heddle) with CMAKE_PREFIX_PATH set to the build folder, for the tests of templates.
configure_file(sdk/testing/build_tree.cmake.in ${CMAKE_BINARY_DIR}/cmake/heddleConfig.cmake @ONLY)
configure_file(sdk/testing/heddleTesting.cmake ${CMAKE_BINARY_DIR}/cmake/heddleTesting.cmake COPYONLY)

# Beside the plugins, so that the conformance program finds cpu.so as it does in a build folder.
set(HEDDLE_TESTING_DIR lib/heddle/testing)
install(TARGETS heddle_conformance heddle_testing ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
heddle_rpath(fake_device ${HEDDLE_TESTING_DIR}/fake_device)
install(TARGETS fake_device RUNTIME_DEPENDENCY_SET bundle LIBRARY DESTINATION ${HEDDLE_TESTING_DIR}/fake_device COMPONENT development)
if(TARGET conformance)
  heddle_rpath(conformance ${HEDDLE_TESTING_DIR})
  install(TARGETS conformance RUNTIME_DEPENDENCY_SET bundle RUNTIME DESTINATION ${HEDDLE_TESTING_DIR} COMPONENT development)
  install(FILES tests/conformance/goldens.safetensors tests/conformance/blocks.safetensors tests/conformance/attention_fp8.safetensors
          DESTINATION ${HEDDLE_TESTING_DIR}
          COMPONENT development)
endif()
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)
heddle_way(HEDDLE_PREFIX_FROM_CMAKE ${cmake_dir} "")
configure_file(sdk/testing/heddleTestingPaths.cmake.in ${CMAKE_BINARY_DIR}/generated/heddleTestingPaths.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/heddleTestingPaths.cmake sdk/testing/heddleTesting.cmake DESTINATION ${cmake_dir}
        COMPONENT development)
install(FILES sdk/testing/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/sdk/testing COMPONENT program)
