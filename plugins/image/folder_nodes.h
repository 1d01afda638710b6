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

inline constexpr const char* kFittingMethods[] = {"None", "Stretch", "Crop", "Pad", nullptr};
inline constexpr Widget kAnyFolder{.source = "input", .kind = HEDDLE_WIDGET_FOLDER};
inline constexpr Widget kFitting{
    .text = "None", .choices = kFittingMethods, .flags = HEDDLE_PORT_OPTIONAL};

struct LoadImageSetFromFolderNode {
  static constexpr Info info{"LoadImageSetFromFolderNode",
                             1,
                             "Load Image Dataset from Folder",
                             "loaders",
                             "All pictures of a folder in one batch, in the size of the first.",
                             kOfFolders};
  static constexpr Input<std::string> folder{"folder", kAnyFolder};
  static constexpr Input<std::string> resize_method{"resize_method", kFitting};
  static constexpr Output<Tensor> images{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(folder, resize_method, images);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// The texts are encoded by nodes of their own, one for each.
struct LoadImageTextSetFromFolderNode {
  static constexpr Widget kSide{
      .number = -1, .min = -1, .max = 10000, .step = 1, .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{
      "LoadImageTextSetFromFolderNode",
      1,
      "Load Image and Text Dataset from Folder",
      "loaders",
      "All pictures of a folder in one batch, and the texts of the same names as a conditioning "
      "with an entry for each picture. A folder in it that is called 3_name counts three times.",
      kOfFolders | HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::string> folder{"folder", kAnyFolder};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_LINK, "", "CLIP"};
  static constexpr Input<std::string> resize_method{"resize_method", kFitting};
  static constexpr Input<std::int64_t> width{"width", kSide, "-1: that of the first picture."};
  static constexpr Input<std::int64_t> height{"height", kSide, "-1: that of the first picture."};
  static constexpr Output<Tensor> images{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(folder, clip, resize_method, width, height, images, conditioning);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::image
