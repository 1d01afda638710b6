// How saved pictures are named: ComfyUI's prefix with its placeholders, subfolders and counter.
// What the browser replaces there before a workflow is sent (%date:...%, %Node.widget%) is replaced
// here as well, because a command line has no browser. Only find_place() and next_counter() look at
// the disk.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::blocks {

// The value of a node's widget as text, by the node's class or title; nothing when there is none.
using WidgetText =
    std::function<std::optional<std::string>(std::string_view node, std::string_view widget)>;

struct PrefixFacts {
  std::tm now{};                       // local time
  std::int64_t width = 0, height = 0;  // of the first picture
  WidgetText widget;                   // may be empty
};

// Replaces %date:yyyy-MM-dd%, %Node.widget%, then %width% %height% %year% %month% %day% %hour%
// %minute% %second%. What it does not know stays as it is (%batch_num% among it).
std::string expand_prefix(std::string_view prefix, const PrefixFacts& facts);

// Where a prefix leads.
struct Place {
  std::filesystem::path folder;  // exists
  std::string subfolder;         // below the output folder, "" for itself
  std::string stem;              // of the files' names
};

// Control characters become '_', as a browser makes them of what stands between percent signs.
// Makes the folder when it is missing. Throws HEDDLE_INVALID_ARGUMENT for a prefix that leaves
// `root`, by "..", as an absolute path, or through a link, and HEDDLE_IO when the folder cannot be
// made.
Place find_place(const std::filesystem::path& root, const std::string& prefix);

// 1 + the greatest number among the folder's files "<stem>_<digits>_..." and "<stem>_<digits>.";
// 1 without any.
std::uint64_t next_counter(const Place& place);

// "<stem>_00001_.png", %batch_num% in the stem replaced. ending: what follows the number.
std::string file_name(const std::string& stem, std::size_t batch_number, std::uint64_t counter,
                      const std::string& ending = "_.png");

}  // namespace heddle::blocks
