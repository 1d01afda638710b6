#include "engine/plugin/library.h"

#include <boost/dll/shared_library.hpp>

#include <vector>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/base/text.h"
#include "engine/plugin/shared_object.h"

namespace heddle::engine {

namespace {

// Never closed, not even at exit: destructors of other statics may still call into them.
void keep_for_ever(boost::dll::shared_library library) {
  static Guarded<std::vector<boost::dll::shared_library>>& kept =
      *new Guarded<std::vector<boost::dll::shared_library>>();
  kept.lock()->push_back(std::move(library));
}

}  // namespace

const heddle_plugin* load_entry(const std::filesystem::path& path) {
  check_shared_object(path);
  boost::dll::shared_library library;
  try {
    library.load(path.string(),
                 boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& reason) {
    throw Error(Code::invalid_argument,
                cat(path.string(), " cannot be loaded as a plugin: ", reason.what()));
  }
  if (!library.has("heddle_entry"))
    throw Error(
        Code::invalid_argument,
        cat(path.string(), " is a shared object but no heddle plugin: it exports no heddle_entry"));
  const heddle_plugin* entry = &library.get<const heddle_plugin>("heddle_entry");
  keep_for_ever(std::move(library));
  return entry;
}

}  // namespace heddle::engine
