#include "plugins/blocks/late_library.h"

#include <dlfcn.h>

#include <heddle/plugin.hpp>
#include <string>

namespace heddle::blocks {

void* late_function(const LateLibrary& library, const char* name) {
  // Opened again, it is only counted once more.
  void* const opened = ::dlopen(library.name, RTLD_LAZY | RTLD_LOCAL);
  void* const function = opened == nullptr ? nullptr : ::dlsym(opened, name);
  if (function != nullptr) return function;
  const char* const reason = ::dlerror();
  throw Error(HEDDLE_UNSUPPORTED, std::string(library.name) +
                                      " is needed here and cannot be used: " +
                                      (reason == nullptr ? "no reason is given" : reason) +
                                      ". Install it as the program was built with it.");
}

}  // namespace heddle::blocks
