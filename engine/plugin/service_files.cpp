// heddle.folders/0 and heddle.files/0: where files are, and what is in them.
#include "engine/base/read_file.h"
#include "engine/base/write_file.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

heddle_value* text_value(std::string text) {
  return const_cast<heddle_value*>(make_value(std::move(text)).release());
}

}  // namespace

const heddle_folders_service* folders_service() {
  static const heddle_folders_service table{
      [](heddle_ctx* ctx, const char* folder, const char* name, heddle_value** path) {
        return to_status([&] {
          *path = text_value(ctx->find_file(text_or_empty(folder), text_or_empty(name)));
        });
      },
      [](heddle_ctx* ctx, const char* kind, heddle_value** folder) {
        return to_status([&] { *folder = text_value(ctx->output_folder(text_or_empty(kind))); });
      },
      [](heddle_ctx* ctx, const char* path, std::uint64_t* hash) {
        return to_status([&] { *hash = ctx->identify_file(text_or_empty(path)); });
      },
      [](heddle_ctx* ctx, const char* folder, heddle_value** list) {
        return to_status([&] {
          List places;
          for (std::string& place : ctx->folder_places(text_or_empty(folder)))
            places.items.push_back(make_value(std::move(place)));
          *list = const_cast<heddle_value*>(make_value(std::move(places)).release());
        });
      }};
  return &table;
}

const heddle_files_service* files_service() {
  static const heddle_files_service table{
      [](const heddle_host*, const char* path, std::uint64_t most_bytes, const char* what,
         heddle_value** content) {
        return to_status([&] {
          *content = text_value(read_file(text_or_empty(path), {text_or_empty(what), most_bytes}));
        });
      },
      [](const heddle_host*, const char* path, heddle_str content, std::int32_t* created) {
        return to_status([&] {
          *created = create_file(text_or_empty(path), {content.data, content.size}) ? 1 : 0;
        });
      }};
  return &table;
}

}  // namespace heddle::engine
