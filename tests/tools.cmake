# What the README shows besides the program. It takes neither the tests nor Boost.Test.

# Fake devices, for tests of everything that places, copies and waits; in a folder of their own, because an engine that finds
# them without being told which devices to use takes all of them.
file(GLOB sources CONFIGURE_DEPENDS tests/fake_device/*.cpp)
list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
heddle_add_plugin(fake_device ${sources})
target_include_directories(fake_device PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fake_device PRIVATE heddle_core Threads::Threads)
set_target_properties(fake_device PROPERTIES OUTPUT_NAME fake LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_device)

# Makes a model that is larger than the budget of graphs/low_memory.json.
add_executable(low_memory_model tests/e2e/tools/low_memory_model.cpp tests/e2e/flux_files.cpp)
target_include_directories(low_memory_model PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/sdk/include)
set_target_properties(low_memory_model PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

set_target_properties(fake_device low_memory_model PROPERTIES UNITY_BUILD OFF)
set_target_properties(low_memory_model PROPERTIES EXCLUDE_FROM_ALL ON)
