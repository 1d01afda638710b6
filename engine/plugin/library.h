// A shared object that exports heddle_entry; the only door to Boost.DLL. The library stays in the
// process once it is loaded: values made by its code may outlive every table.
#pragma once

#include <filesystem>
#include <memory>

#include "heddle/abi/base.h"

namespace heddle::engine {

// Loads the file and finds its entry; no plugin code beyond static constructors has run when this
// returns. Throws invalid_argument: not a shared object, a file that is cut off, undefined symbols,
// no heddle_entry; the message has the loader's reason.
const heddle_plugin* load_entry(const std::filesystem::path& path);

}  // namespace heddle::engine
