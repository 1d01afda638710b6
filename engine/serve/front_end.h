// ComfyUI's front end as pip installs it, and the packages beside it: the workflow templates that
// its dialog offers, and the pages that explain node types. None of them is part of heddle.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heddle::engine {

struct FrontEnd {
  std::filesystem::path pages;                   // of comfyui-frontend-package: has index.html
  std::vector<std::filesystem::path> templates;  // of comfyui-workflow-templates and its parts
  std::filesystem::path docs;                    // of comfyui-embedded-docs: CLASS/en.md
  std::string version, templates_version;        // "1.58.1"; "": not known

  bool is_served() const { return !pages.empty(); }
};

// `named`: "pip" (looked for where pip installs), the folder of a package, its "static", or any
// folder with an index.html; "": none. What stands beside a package is found with it. Throws Error
// where there is no front end.
FrontEnd find_front_end(const std::string& named);

}  // namespace heddle::engine
