#include "plugins/image/save_dataset_nodes.h"

#include <cstdio>
#include <ctime>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/file_names.h"
#include "plugins/image/picture_batch.h"
#include "plugins/image/picture_list.h"
#include "plugins/image/png_files.h"

namespace heddle::image {
namespace {

namespace fs = std::filesystem;

std::string five_digits(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%05llu", static_cast<unsigned long long>(number));
  return text;
}

// Whole, in the place of what has the name; never a part of it.
void write_over(const fs::path& path, std::string_view content) {
  fs::path beside = path;
  beside += ".new";
  std::error_code error;
  while (!create_file(beside.string(), content) && !error) fs::remove(beside, error);
  if (!error) fs::rename(beside, path, error);
  if (error)
    throw Error(HEDDLE_IO, path.string() + ": the file cannot be written: " + error.message() +
                               ". Check the permissions of the folder and of the file.");
}

class DataFolder {
 public:
  DataFolder(Context& ctx, const std::string& folder, const std::string& prefix, bool overwrites,
             const blocks::PixelSize& size)
      : ctx_(ctx), overwrites_(overwrites) {
    heddle_value* root = nullptr;
    check(service<heddle_folders_service>().output(ctx.raw(), "output", &root));
    blocks::PrefixFacts facts;
    facts.width = size.width;
    facts.height = size.height;
    const std::time_t now = std::time(nullptr);
    ::localtime_r(&now, &facts.now);
    place_ =
        blocks::find_place(Value::adopt(root).as<std::string>(),
                           folder + "/" + (overwrites ? prefix : expand_prefix(prefix, facts)));
  }
  // The picture of that number, and its text where there is one.
  void write(std::size_t number, std::string_view picture, const std::string* text) {
    if (overwrites_) {
      const fs::path stem = place_.folder / (place_.stem + "_" + five_digits(number));
      write_over(stem.string() + ".png", picture);
      tell(stem.string() + ".png");
      if (text != nullptr) write_over(stem.string() + ".txt", *text);
      return;
    }
    std::uint64_t counter = next_counter(place_);
    fs::path stem;
    do  // until there is a name that no other program has taken
      stem =
          place_.folder / (place_.stem + "_" + five_digits(counter++) + "_" + five_digits(number));
    while (!create_file(stem.string() + ".png", picture));
    tell(stem.string() + ".png");
    if (text != nullptr) write_over(stem.string() + ".txt", *text);
  }

 private:
  void tell(const std::string& path) {
    service<heddle_report_service>().wrote(ctx_.raw(), path.c_str(), nullptr);
  }

  Context& ctx_;
  bool overwrites_;
  blocks::Place place_;
};

template <class Node>
void save_data_set(Context& ctx, const Value& texts) {
  const std::vector<Tensor> pictures = single_pictures(ctx[Node::images], "images");
  if (pictures.empty()) return;
  DataFolder folder(ctx, ctx[Node::folder_name], ctx[Node::filename_prefix],
                    ctx[Node::mode] == "overwrite", size_of(pictures[0]));
  const auto cancelled = [&] { return ctx.cancelled(); };
  HostMemory memory(ctx);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    check_images(pictures[i]);
    const Bytes file =
        write_png(picture_of(ctx, pictures[i], 0, memory), {}, kSavedLevel, cancelled);
    std::string text;
    if (i < texts.count()) text = texts.item(std::uint32_t(i)).as<std::string>();
    folder.write(i, {reinterpret_cast<const char*>(file.data()), file.size()},
                 i < texts.count() ? &text : nullptr);
    ctx.progress(double(i + 1) / double(pictures.size()));
  }
}

}  // namespace

void SaveImageDataSetToFolder::execute(Context& ctx) {
  save_data_set<SaveImageDataSetToFolder>(ctx, Value());
}

void SaveImageTextDataSetToFolder::execute(Context& ctx) {
  save_data_set<SaveImageTextDataSetToFolder>(ctx, ctx.has(texts) ? ctx[texts] : Value());
}

}  // namespace heddle::image
