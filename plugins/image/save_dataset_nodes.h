// Pictures of data sets as PNG files in a folder of their own, and their texts beside them. The
// files hold no workflow. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr const char* kDataModes[] = {"overwrite", "increment", nullptr};
inline constexpr Widget kDataFolderName{.text = "dataset", .extra = R"({"multiline": false})"};
inline constexpr Widget kDataPrefix{.text = "image",
                                    .extra = R"({"advanced": true, "multiline": false})"};
inline constexpr Widget kDataMode{.text = "overwrite", .choices = kDataModes, .type = "COMBO"};
inline constexpr std::uint32_t kSavesData =
    HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;

struct SaveImageDataSetToFolder {
  static constexpr Info info{"SaveImageDataSetToFolder",
                             1,
                             "Save Image (to Folder) (DEPRECATED)",
                             "image",
                             "All pictures of a list as files of a folder below the output folder.",
                             kSavesData | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::string> folder_name{"folder_name", kDataFolderName};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kDataPrefix};
  static constexpr Input<std::string> mode{"mode", kDataMode};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr auto ports =
      heddle::ports(images, folder_name, filename_prefix, mode, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

struct SaveImageTextDataSetToFolder {
  static constexpr Widget kTexts{.extra = R"({"forceInput": true, "multiline": false})",
                                 .flags = HEDDLE_PORT_LIST | HEDDLE_PORT_OPTIONAL,
                                 .type = "STRING"};

  static constexpr Info info{
      "SaveImageTextDataSetToFolder",
      1,
      "Save Image-Text (to Folder)",
      "image",
      "Pictures and texts of two lists as files of the same names in a folder.",
      kSavesData};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::string> folder_name{"folder_name", kDataFolderName};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", kDataPrefix};
  static constexpr Input<std::string> mode{"mode", kDataMode};
  static constexpr Input<Value> texts{"texts", kTexts};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr auto ports =
      heddle::ports(images, folder_name, filename_prefix, mode, texts, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
