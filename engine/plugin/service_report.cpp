// heddle.report/0, heddle.preview/0 and heddle.send/0: what people are told of a call.
#include <algorithm>
#include <cstring>

#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

// What the plugin knows of the struct; the rest is zero.
heddle_preview known_part(const heddle_preview& given) {
  heddle_preview known{};
  std::memcpy(&known, &given, std::min<std::size_t>(given.size, sizeof known));
  return known;
}

}  // namespace

const heddle_report_service* report_service() {
  static const heddle_report_service table{
      [](heddle_ctx* ctx, double fraction, const char* note) {
        free_status(to_status([&] { ctx->progress(fraction, text_or_empty(note)); }));
      },
      [](heddle_ctx* ctx, const char* message) {
        free_status(to_status([&] { ctx->warn(text_or_empty(message)); }));
      },
      [](heddle_ctx* ctx, const char* path, const char* ui) {
        free_status(to_status([&] { ctx->wrote(text_or_empty(path), text_or_empty(ui)); }));
      }};
  return &table;
}

const heddle_preview_service* preview_service() {
  static const heddle_preview_service table{
      [](heddle_ctx* ctx) -> std::int32_t { return ctx->preview_method(); },
      [](heddle_ctx* ctx, const heddle_preview* given) {
        if (given != nullptr) free_status(to_status([&] { ctx->preview(known_part(*given)); }));
      }};
  return &table;
}

const heddle_send_service* send_service() {
  static const heddle_send_service table{[](heddle_ctx* ctx, const void* png, std::uint64_t bytes) {
    return to_status([&] {
      const std::string_view file(static_cast<const char*>(png), png == nullptr ? 0 : bytes);
      if (!file.starts_with("\x89PNG\r\n\x1a\n"))
        throw Error(Code::invalid_argument,
                    cat("a picture of ", file.size(), " bytes is no PNG file. Send a PNG."));
      ctx->send_picture(file);
    });
  }};
  return &table;
}

}  // namespace heddle::engine
