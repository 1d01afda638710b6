#include "plugins/image/folder_nodes.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "plugins/blocks/input_file.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/loaded_picture.h"
#include "plugins/image/pixels.h"

namespace heddle::image {
namespace {

namespace fs = std::filesystem;

fs::path folder_named(Context& ctx, const std::string& name) {
  heddle_value* path = nullptr;
  check(service<heddle_folders_service>().find(ctx.raw(), "input", name.c_str(), &path));
  return Value::adopt(path).as<std::string>();
}

bool is_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  constexpr const char* kEndings[] = {".png", ".jpg", ".jpeg", ".webp"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

// What is in a folder, by name.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    throw Error(HEDDLE_IO, folder.string() + ": the folder cannot be read: " + error.message() +
                               ". Check its permissions.");
  std::ranges::sort(entries);
  return entries;
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> pictures = entries_of(folder);
  std::erase_if(pictures, [](const fs::path& path) { return !is_picture_name(path); });
  return pictures;
}

// How often the pictures of a folder count: "3_cats" three times.
std::size_t repeats_of(const std::string& name) {
  const std::string number = name.substr(0, name.find('_'));
  const bool is_number =
      !number.empty() && number.size() < 4 && number.find_first_not_of("0123456789") == number.npos;
  return is_number ? std::stoul(number) : 1;
}

// Those of the folder, and those of the folders in it.
std::vector<fs::path> all_pictures_in(const fs::path& folder) {
  std::vector<fs::path> pictures;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (is_picture_name(entry)) {
      pictures.push_back(entry);
    } else if (fs::is_directory(entry, ignored)) {
      const std::vector<fs::path> inner = pictures_in(entry);
      for (std::size_t i = 0; i < repeats_of(entry.filename().string()); ++i)
        pictures.insert(pictures.end(), inner.begin(), inner.end());
    }
  }
  return pictures;
}

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

// The text beside a picture, without white space at its ends; empty without one.
std::string caption_of(fs::path path) {
  constexpr std::uint64_t kMostText = 1 << 20;
  path.replace_extension(".txt");
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const Value file = read_file(path.string(), kMostText, "a text");
  const std::string_view text = file.text();
  const std::size_t begin = text.find_first_not_of(" \t\r\n\f\v");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n\f\v") - begin + 1));
}

std::uint64_t hash_of_files(const std::vector<fs::path>& files, bool has_texts) {
  std::uint64_t hash = files.size();
  const auto add = [&](std::uint64_t one) { hash = (hash ^ one) * 0x100000001b3 + 1; };
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), text = has_texts ? caption_of(file) : "";
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

}  // namespace

void LoadImageDataSetFromFolder::execute(Context& ctx) {
  const fs::path where = folder_named(ctx, ctx[folder]);
  const std::vector<fs::path> files = pictures_in(where);
  require_some(files, where);
  std::vector<Value> pictures;
  for (const fs::path& file : files) {
    check_cancelled(ctx);
    pictures.push_back(value_of(picture_at(ctx, file)));
  }
  ctx[images] = list_of(pictures);
}
std::uint64_t LoadImageDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_files(pictures_in(folder_named(ctx, ctx[folder])), false);
}

void LoadImageTextDataSetFromFolder::execute(Context& ctx) {
  const fs::path where = folder_named(ctx, ctx[folder]);
  const std::vector<fs::path> files = all_pictures_in(where);
  require_some(files, where);
  std::vector<Value> pictures, captions;
  for (const fs::path& file : files) {
    check_cancelled(ctx);
    pictures.push_back(value_of(picture_at(ctx, file)));
    captions.push_back(value_of(caption_of(file)));
  }
  ctx[images] = list_of(pictures);
  ctx[texts] = list_of(captions);
}
std::uint64_t LoadImageTextDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_files(all_pictures_in(folder_named(ctx, ctx[folder])), true);
}

void LoadImageSetFromFolderNode::execute(Context& ctx) {
  const fs::path where = folder_named(ctx, ctx[folder]);
  const std::vector<fs::path> files = pictures_in(where);
  require_some(files, where);
  const std::string how = ctx[resize_method];
  std::optional<Canvas> to;
  for (std::size_t i = 0; i < files.size(); ++i) {
    check_cancelled(ctx);
    Pixels picture = Pixels::image(ctx, picture_at(ctx, files[i]), "images");
    if (!to) {
      Extent e = picture.extent();
      e.count = std::int64_t(files.size());
      to = Canvas::image(ctx, e);
    }
    const blocks::GridSize size = to->extent().size();
    if (!(picture.extent().size() == size)) {
      if (how == "None")
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    files[i].string() +
                        ": it has another size than the first picture. Choose a resize_method.");
      if (how == "Crop")
        picture = corner_of(ctx, picture, size);
      else
        picture.resize(ctx, size, "lanczos");
    }
    std::copy_n(picture.row(0, 0), to->extent().picture(), to->row(std::int64_t(i), 0));
  }
  ctx[images] = to->tensor();
}
std::uint64_t LoadImageSetFromFolderNode::fingerprint(Context& ctx) {
  return hash_of_files(pictures_in(folder_named(ctx, ctx[folder])), false);
}

}  // namespace heddle::image
