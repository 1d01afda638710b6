#include "t5_modules.h"

#include <heddle/plugin.hpp>

#include "t5_names.h"

namespace heddle::encoders {
namespace {

heddle_status* list_modules(const heddle_host*, const heddle_checkpoint* raw,
                            heddle_module_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    const std::optional<T5Names> names = T5Names::find(file);
    if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no T5");
    names->each_module([&](const std::string& module, const std::string& tensor) {
      const std::vector<Part> whole{{tensor}};
      const RawParts parts(whole);
      found(to, module.c_str(), "weight", parts.size(), parts.data());
    });
  });
}

// Its table of tokens once, as single files have it.
heddle_status* list_originals(const heddle_host*, const heddle_checkpoint* raw,
                              heddle_original_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    const std::optional<T5Names> names = T5Names::find(file);
    if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no T5");
    names->each_module([&](const std::string& module, const std::string& tensor) {
      if (module == "encoder.embed_tokens") return;
      const std::vector<Part> whole{{tensor}};
      const RawParts parts(whole);
      found(to, (module + ".weight").c_str(), parts.size(), parts.data(), 0, nullptr);
    });
  });
}

}  // namespace

constinit const heddle_module_names_desc kT5ModuleNames{
    sizeof(heddle_module_names_desc), "t5", "by transformers' names, whatever the file's are",
    &list_modules, &list_originals};

}  // namespace heddle::encoders
