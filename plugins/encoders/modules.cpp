#include "modules.h"

#include "clip_names.h"
#include "language_modules.h"
#include "t5_modules.h"

namespace heddle::encoders {

const heddle_list* Modules::list() {
  return descs<kT5ModuleNames, kLanguageModuleNames, kClipModuleNames>();
}

}  // namespace heddle::encoders
