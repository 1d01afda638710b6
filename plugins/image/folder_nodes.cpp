#include "plugins/image/folder_nodes.h"

#include <algorithm>
#include <filesystem>
#include <heddle/expansion.hpp>
#include <map>
#include <optional>

#include "plugins/blocks/data_folder.h"
#include "plugins/blocks/input_file.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/loaded_picture.h"
#include "plugins/image/pixels.h"

namespace heddle::image {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPictureEndings[] = {".png", ".jpg", ".jpeg", ".webp"};

void require_some(const std::vector<fs::path>& pictures, const fs::path& folder) {
  if (pictures.empty())
    throw Error(HEDDLE_NOT_FOUND,
                folder.string() + ": there is no picture. Put PNG, JPEG or WebP files there.");
}

Tensor picture_at(Context& ctx, const fs::path& path) {
  HostMemory memory(ctx);
  const Picture picture = std::move(read_frames(path.string(), memory)[0].picture);
  const Tensor tensor = ctx.make_host({1, picture.height, picture.width, 3}, HEDDLE_F32);
  spread(picture, {tensor.data<float>(), std::size_t(tensor.count())}, {});
  return tensor;
}

std::uint64_t hash_of_files(const std::vector<fs::path>& files, bool has_texts) {
  std::uint64_t hash = files.size();
  const auto add = [&](std::uint64_t one) { hash = (hash ^ one) * 0x100000001b3 + 1; };
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(),
                      text = has_texts ? blocks::caption_of(file) : "";
    add(picture_hash(file.string()));
    for (const std::string& part : {name, text})
      add(blocks::content_hash({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()}));
  }
  return hash;
}

// The part of a picture in its upper left corner; black where it is smaller.
Pixels corner_of(Context& ctx, const Pixels& from, const blocks::GridSize& size) {
  const Extent& e = from.extent();
  const Canvas to = Canvas::image(ctx, {1, size.height, size.width, 3});
  to.fill(0);
  for (std::int64_t y = 0; y < std::min(size.height, e.height); ++y)
    std::copy_n(from.row(0, y), 3 * std::min(size.width, e.width), to.row(0, y));
  return Pixels::image(ctx, to.tensor(), "images");
}

// All pictures in one size: the given one, and where a side is -1, that of the first.
Tensor batch_of(Context& ctx, const std::vector<fs::path>& files, const std::string& how,
                blocks::GridSize size) {
  std::optional<Canvas> to;
  for (std::size_t i = 0; i < files.size(); ++i) {
    check_cancelled(ctx);
    Pixels picture = Pixels::image(ctx, picture_at(ctx, files[i]), "images");
    if (!to) {
      if (size.height == -1) size.height = picture.extent().height;
      if (size.width == -1) size.width = picture.extent().width;
      to = Canvas::image(
          ctx, {std::int64_t(files.size()), size.height, size.width, picture.extent().channels});
    }
    if (!(picture.extent().size() == size)) {
      if (how == "None")
        throw Error(HEDDLE_INVALID_ARGUMENT, files[i].string() + ": it has another size than " +
                                                 (i == 0 ? "was asked for" : "the first picture") +
                                                 ". Choose a resize_method.");
      if (how == "Crop")
        picture = corner_of(ctx, picture, size);
      else
        picture.resize(ctx, size, "lanczos");
    }
    std::copy_n(picture.row(0, 0), to->extent().picture(), to->row(std::int64_t(i), 0));
  }
  return to->tensor();
}

}  // namespace

void LoadImageDataSetFromFolder::execute(Context& ctx) {
  const fs::path where = blocks::input_folder(ctx, ctx[folder]);
  const std::vector<fs::path> files = blocks::data_files(where, kPictureEndings);
  require_some(files, where);
  std::vector<Value> pictures;
  for (const fs::path& file : files) {
    check_cancelled(ctx);
    pictures.push_back(value_of(picture_at(ctx, file)));
  }
  ctx[images] = list_of(pictures);
}
std::uint64_t LoadImageDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_files(blocks::data_files(blocks::input_folder(ctx, ctx[folder]), kPictureEndings),
                       false);
}

void LoadImageTextDataSetFromFolder::execute(Context& ctx) {
  const fs::path where = blocks::input_folder(ctx, ctx[folder]);
  const std::vector<fs::path> files = blocks::repeated_data_files(where, kPictureEndings);
  require_some(files, where);
  std::vector<Value> pictures, captions;
  for (const fs::path& file : files) {
    check_cancelled(ctx);
    pictures.push_back(value_of(picture_at(ctx, file)));
    captions.push_back(value_of(blocks::caption_of(file)));
  }
  ctx[images] = list_of(pictures);
  ctx[texts] = list_of(captions);
}
std::uint64_t LoadImageTextDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_files(
      blocks::repeated_data_files(blocks::input_folder(ctx, ctx[folder]), kPictureEndings), true);
}

void LoadImageSetFromFolderNode::execute(Context& ctx) {
  const fs::path where = blocks::input_folder(ctx, ctx[folder]);
  const std::vector<fs::path> files = blocks::data_files(where, kPictureEndings);
  require_some(files, where);
  ctx[images] = batch_of(ctx, files, ctx[resize_method], {-1, -1});
}
std::uint64_t LoadImageSetFromFolderNode::fingerprint(Context& ctx) {
  return hash_of_files(blocks::data_files(blocks::input_folder(ctx, ctx[folder]), kPictureEndings),
                       false);
}

void LoadImageTextSetFromFolderNode::execute(Context& ctx) {
  const fs::path where = blocks::input_folder(ctx, ctx[folder]);
  const std::vector<fs::path> files = blocks::repeated_data_files(where, kPictureEndings);
  require_some(files, where);
  const blocks::GridSize size{ctx.has(height) ? ctx[height] : -1, ctx.has(width) ? ctx[width] : -1};
  if (size.height == 0 || size.width == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a side of 0 pixels leaves no picture. Give -1 for that of the first picture.");
  ctx[images] = batch_of(ctx, files, ctx.has(resize_method) ? ctx[resize_method] : "None", size);
  Expansion graph(ctx);
  const Expansion::Link encoders = link_of(ctx[clip]);
  std::map<std::string, Expansion::Link> encoded;
  std::optional<Expansion::Link> all;
  for (const fs::path& file : files) {
    const std::string caption = blocks::caption_of(file);
    auto found = encoded.find(caption);
    if (found == encoded.end())
      found =
          encoded
              .emplace(
                  caption,
                  graph.node("CLIPTextEncode").set("text", caption).link("clip", encoders).out())
              .first;
    all = all ? graph.node("ConditioningCombine")
                    .link("conditioning_1", *all)
                    .link("conditioning_2", found->second)
                    .out()
              : found->second;
  }
  graph.give(conditioning, *all);
}
std::uint64_t LoadImageTextSetFromFolderNode::fingerprint(Context& ctx) {
  return hash_of_files(
      blocks::repeated_data_files(blocks::input_folder(ctx, ctx[folder]), kPictureEndings), true);
}

}  // namespace heddle::image
