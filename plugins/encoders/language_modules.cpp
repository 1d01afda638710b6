#include "language_modules.h"

#include <heddle/plugin.hpp>

#include "language_names.h"

namespace heddle::encoders {
namespace {

LanguageNames names_in(const Checkpoint& file) {
  const std::optional<LanguageNames> names = LanguageNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no language model");
  return *names;
}

heddle_status* list_language_modules(const heddle_host*, const heddle_checkpoint* raw,
                                     heddle_module_found found, void* to) {
  return guard([&] {
    names_in(Checkpoint::share(raw))
        .each_module([&](const std::string& module, const char* kind, const std::string& tensor) {
          const std::string_view what = kind;
          if (what != "weight" && what != "bias") return;  // no module's of its own
          const std::vector<Part> whole{{tensor}};
          const RawParts parts(whole);
          found(to, module.c_str(), kind, parts.size(), parts.data());
        });
  });
}

heddle_status* list_language_originals(const heddle_host*, const heddle_checkpoint* raw,
                                       heddle_original_found found, void* to) {
  return guard([&] {
    names_in(Checkpoint::share(raw))
        .each_module([&](const std::string& module, const char* kind, const std::string& tensor) {
          const std::vector<Part> whole{{tensor}};
          const RawParts parts(whole);
          found(to, (module + "." + kind).c_str(), parts.size(), parts.data(), 0, nullptr);
        });
  });
}

}  // namespace

constinit const heddle_module_names_desc kLanguageModuleNames{
    sizeof(heddle_module_names_desc), "language_model",
    "by transformers' names, whatever the file's are", &list_language_modules,
    &list_language_originals};

}  // namespace heddle::encoders
