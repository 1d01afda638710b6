// Nodes of data sets of videos: all files of a folder, and lists in another order. On the host.
#pragma once

#include <heddle/node.hpp>

namespace heddle::video {

inline constexpr std::uint32_t kOfVideoSets = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr Widget kVideoFolder{
    .source = "input", .kind = HEDDLE_WIDGET_FOLDER, .type = "COMBO"};

inline constexpr Widget kSetSeed{.kind = HEDDLE_WIDGET_SEED,
                                 .extra = R"({"control_after_generate": null})"};

struct LoadVideoDataSetFromFolder {
  static constexpr Info info{"LoadVideoDataSetFromFolder",
                             1,
                             "Load Video (from Folder)",
                             "video",
                             "A list of all videos (MP4, AVI, MOV, WebM, MKV, FLV) of a folder.",
                             kOfVideoSets};
  static constexpr Input<std::string> folder{"folder", kVideoFolder};
  static constexpr Output<Value> videos{"videos", HEDDLE_PORT_LIST, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(folder, videos);
  static void execute(Context& ctx);
  static std::uint64_t fingerprint(Context& ctx);
};

struct LoadVideoTextDataSetFromFolder {
  static constexpr Info info{
      "LoadVideoTextDataSetFromFolder",
      1,
      "Load Video-Text (from Folder)",
      "video",
      "Lists of all videos of a folder, and of the texts of the same names. A folder in it that is "
      "called 3_name counts three times.",
      kOfVideoSets};
  static constexpr Input<std::string> folder{"folder", kVideoFolder};
  static constexpr Output<Value> videos{"videos", HEDDLE_PORT_LIST, "", "VIDEO"};
  static constexpr Output<Value> texts{"texts", HEDDLE_PORT_LIST, "", "STRING"};
  static constexpr auto ports = heddle::ports(folder, videos, texts);
  static void execute(Context& ctx);
  static std::uint64_t fingerprint(Context& ctx);
};

struct ShuffleVideoDataset {
  static constexpr Info info{"ShuffleVideoDataset",
                             1,
                             "Shuffle Videos List",
                             "video/batch",
                             "The videos of a list in another order.",
                             kOfVideoSets};
  static constexpr Input<Value> videos{"videos", HEDDLE_PORT_LIST | HEDDLE_PORT_PASS, "", "VIDEO"};
  static constexpr Input<std::uint64_t> seed{"seed", kSetSeed};
  static constexpr Output<Value> out{"videos", HEDDLE_PORT_LIST, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(videos, seed, out);
  static void execute(Context& ctx);
};

struct ShuffleVideoTextDataset {
  static constexpr Widget kTexts{
      .extra = R"({"multiline": false})", .flags = HEDDLE_PORT_LIST, .type = "STRING"};

  static constexpr Info info{"ShuffleVideoTextDataset",
                             1,
                             "Shuffle Pairs of Video-Text",
                             "dataset/video",
                             "Videos and their texts in another order, the same for both.",
                             kOfVideoSets};
  static constexpr Input<Value> videos{"videos", HEDDLE_PORT_LIST | HEDDLE_PORT_PASS, "", "VIDEO"};
  static constexpr Input<Value> texts{"texts", kTexts};
  static constexpr Input<std::uint64_t> seed{"seed", kSetSeed};
  static constexpr Output<Value> out{"videos", HEDDLE_PORT_LIST, "", "VIDEO"};
  static constexpr Output<Value> texts_out{"texts", HEDDLE_PORT_LIST, "", "STRING"};
  static constexpr auto ports = heddle::ports(videos, texts, seed, out, texts_out);
  static void execute(Context& ctx);
};

}  // namespace heddle::video
