// Nodes that read all pictures of a folder below the input folder, in the order of their names, and
// the texts beside them. On the host; cached by what the files hold.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr std::uint32_t kOfFolders = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr Widget kDataFolder{
    .source = "input", .kind = HEDDLE_WIDGET_FOLDER, .type = "COMBO"};

struct LoadImageDataSetFromFolder {
  static constexpr Info info{"LoadImageDataSetFromFolder",
                             1,
                             "Load Image (from Folder)",
                             "image",
                             "A list of all pictures (PNG, JPEG, WebP) of a folder.",
                             kOfFolders};
  static constexpr Input<std::string> folder{"folder", kDataFolder};
  static constexpr Output<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(folder, images);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadImageTextDataSetFromFolder {
  static constexpr Info info{
      "LoadImageTextDataSetFromFolder",
      1,
      "Load Image-Text (from Folder)",
      "image",
      "Lists of all pictures of a folder, and of the texts of the same names. "
      "A folder in it that is called 3_name counts three times.",
      kOfFolders};
  static constexpr Input<std::string> folder{"folder", kDataFolder};
  static constexpr Output<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Output<Value> texts{"texts", HEDDLE_PORT_LIST, "", "STRING"};
  static constexpr auto ports = heddle::ports(folder, images, texts);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadImageSetFromFolderNode {
  static constexpr const char* kMethods[] = {"None", "Stretch", "Crop", "Pad", nullptr};
  static constexpr Widget kFolder{.source = "input", .kind = HEDDLE_WIDGET_FOLDER};
  static constexpr Widget kMethod{
      .text = "None", .choices = kMethods, .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"LoadImageSetFromFolderNode",
                             1,
                             "Load Image Dataset from Folder",
                             "loaders",
                             "All pictures of a folder in one batch, in the size of the first.",
                             kOfFolders};
  static constexpr Input<std::string> folder{"folder", kFolder};
  static constexpr Input<std::string> resize_method{"resize_method", kMethod};
  static constexpr Output<Tensor> images{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(folder, resize_method, images);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::image
