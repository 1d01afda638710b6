// Bodies of forms with files: multipart/form-data. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

struct FormPart {
  std::string name, file_name;  // file_name: empty where it is no file
  std::string_view content;     // of the body
};

// The parts of a body. Nothing where it is none, or is cut off.
std::optional<std::vector<FormPart>> read_form(std::string_view content_type,
                                               std::string_view body);

// The first part of this name; nullptr: there is none.
const FormPart* find_part(const std::vector<FormPart>& parts, std::string_view name);

}  // namespace heddle::engine
