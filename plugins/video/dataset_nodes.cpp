#include "plugins/video/dataset_nodes.h"

#include "plugins/blocks/data_folder.h"
#include "plugins/blocks/input_file.h"
#include "plugins/video/numpy_random.h"
#include "plugins/video/values.h"

namespace heddle::video {
namespace {

using Paths = std::vector<std::filesystem::path>;

constexpr const char* kVideoEndings[] = {".mp4", ".avi", ".mov", ".webm", ".mkv", ".flv"};

Paths videos_in(Context& ctx, const std::string& folder, bool has_texts) {
  const std::filesystem::path where = blocks::input_folder(ctx, folder);
  Paths files = has_texts ? blocks::repeated_data_files(where, kVideoEndings)
                          : blocks::data_files(where, kVideoEndings);
  if (files.empty())
    throw Error(
        HEDDLE_NOT_FOUND,
        where.string() + ": there is no video. Put MP4, AVI, MOV, WebM, MKV or FLV files there.");
  return files;
}

Value list_of_videos(const Paths& files) {
  std::vector<Value> videos;
  for (const std::filesystem::path& file : files)
    videos.push_back(to_value(FileVideo{file.string(), {}, 0, 0, {}}));
  return list_of(videos);
}

std::uint64_t hash_of_videos(Context& ctx, const Paths& files, bool has_texts) {
  std::uint64_t hash = files.size();
  const auto add = [&](std::uint64_t one) { hash = (hash ^ one) * 0x100000001b3 + 1; };
  for (const std::filesystem::path& file : files) {
    std::uint64_t identity = 0;
    check(service<heddle_folders_service>().identify(ctx.raw(), file.c_str(), &identity));
    add(identity);
    for (const std::string& part : {file.string(), has_texts ? blocks::caption_of(file) : ""})
      add(blocks::content_hash({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()}));
  }
  return hash;
}

Value in_order(const Value& list, const std::vector<std::uint32_t>& order) {
  std::vector<Value> items;
  for (const std::uint32_t i : order) items.push_back(list.item(i));
  return list_of(items);
}

}  // namespace

void LoadVideoDataSetFromFolder::execute(Context& ctx) {
  ctx[videos] = list_of_videos(videos_in(ctx, ctx[folder], false));
}
std::uint64_t LoadVideoDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_videos(ctx, videos_in(ctx, ctx[folder], false), false);
}

void LoadVideoTextDataSetFromFolder::execute(Context& ctx) {
  const Paths files = videos_in(ctx, ctx[folder], true);
  std::vector<Value> captions;
  for (const std::filesystem::path& file : files)
    captions.push_back(value_of(blocks::caption_of(file)));
  ctx[videos] = list_of_videos(files);
  ctx[texts] = list_of(captions);
}
std::uint64_t LoadVideoTextDataSetFromFolder::fingerprint(Context& ctx) {
  return hash_of_videos(ctx, videos_in(ctx, ctx[folder], true), true);
}

void ShuffleVideoDataset::execute(Context& ctx) {
  const Value list = ctx[videos];
  ctx[out] = in_order(list, NumpyRandom(ctx[seed]).permutation(list.count()));
}

void ShuffleVideoTextDataset::execute(Context& ctx) {
  const Value list = ctx[videos], captions = ctx[texts];
  if (list.count() != captions.count())
    throw Error(HEDDLE_INVALID_ARGUMENT, "texts: there are " + std::to_string(captions.count()) +
                                             ", and " + std::to_string(list.count()) +
                                             " videos. Give one for each.");
  const std::vector<std::uint32_t> order = NumpyRandom(ctx[seed]).permutation(list.count());
  ctx[out] = in_order(list, order);
  ctx[texts_out] = in_order(captions, order);
}

}  // namespace heddle::video
