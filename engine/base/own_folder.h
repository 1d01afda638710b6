// Where the engine's own code stands, so that what ships with it is found wherever that is. Any
// thread.
#pragma once

#include <filesystem>

namespace heddle::engine {

// The folder of the running program.
std::filesystem::path program_folder();

// The folder of the shared library that holds the engine, links to it followed; the program's where
// the engine is a part of the program.
std::filesystem::path library_folder();

}  // namespace heddle::engine
