#include "engine/plugin/library.h"

#include <boost/dll/shared_library.hpp>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

const heddle_plugin* load_entry(const std::filesystem::path& path) {
  // Leaked on purpose: see the header.
  auto* library = new boost::dll::shared_library();
  try {
    library->load(path.string(), boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& reason) {
    delete library;
    throw Error(Code::invalid_argument, cat(path.string(), " cannot be loaded as a plugin: ", reason.what()));
  }
  if (!library->has("heddle_entry")) {
    delete library;
    throw Error(Code::invalid_argument, cat(path.string(), " is a shared object but no heddle plugin: it exports no heddle_entry"));
  }
  return &library->get<const heddle_plugin>("heddle_entry");
}

}  // namespace heddle::core
