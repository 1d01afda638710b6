// Picture files made of picture files, for programs that serve them (heddle/abi/picture_files.h).
#pragma once

#include <heddle/abi/picture_files.h>

#include <heddle/plugin.hpp>

namespace heddle::image {

struct PictureFiles {
  static constexpr std::string_view kind = HEDDLE_PICTURE_FILES;
  static const heddle_list* list();
};

}  // namespace heddle::image
