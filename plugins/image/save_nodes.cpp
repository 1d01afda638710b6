#include "plugins/image/save_nodes.h"

#include <charconv>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <random>

#include "plugins/image/file_names.h"
#include "plugins/image/json_text.h"
#include "plugins/image/pixels.h"
#include "plugins/image/png.h"

namespace heddle::image {
namespace {

constexpr int kSavedLevel = 4, kPreviewLevel = 1;  // of compression, as ComfyUI's

std::string output_folder(Context& ctx, const char* kind) {
  heddle_value* folder = nullptr;
  check(service<heddle_folders_service>().output(ctx.raw(), kind, &folder));
  return Value::adopt(folder).as<std::string>();
}

Value parse_json(const std::string& text, const char* name) {
  const auto& json = service<heddle_json_service>();
  heddle_value* value = nullptr;
  check(json.parse(services.host, {text.data(), text.size()}, name, &value));
  return Value::adopt(value);
}

std::string write_json(const Value& value) {
  const auto& json = service<heddle_json_service>();
  heddle_value* text = nullptr;
  check(json.write(services.host, value.raw(), &text));
  return Value::adopt(text).as<std::string>();
}

std::string number_text(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : "";
}

std::optional<std::string> widget_text(const Value& value) {
  switch (value.kind()) {
    case HEDDLE_KIND_BOOL:
      return value.as<bool>() ? "true" : "false";
    case HEDDLE_KIND_INT:
      return std::to_string(value.as<std::int64_t>());
    case HEDDLE_KIND_UINT:
      return std::to_string(value.as<std::uint64_t>());
    case HEDDLE_KIND_FLOAT:
      return number_text(value.as<double>());
    case HEDDLE_KIND_STR:
      return value.as<std::string>();
    default:
      return std::nullopt;  // a link
  }
}

// The first node of that class, else the first of that title, and its input.
std::optional<std::string> find_widget(const Value& nodes, std::string_view node,
                                       std::string_view widget) {
  const auto search = [&](auto name_of) -> std::optional<std::string> {
    for (std::uint32_t i = 0; i < nodes.count(); ++i) {
      const Value candidate = nodes.item(i);
      const Value name = name_of(candidate);
      if (!name.is(HEDDLE_KIND_STR) || name.as<std::string>() != node) continue;
      return widget_text(candidate.field("inputs").field(std::string(widget).c_str()));
    }
    return std::nullopt;
  };
  if (auto found = search([](const Value& v) { return v.field("class_type"); })) return found;
  return search([](const Value& v) { return v.field("_meta").field("title"); });
}

std::string hidden_text(Context& ctx, const Input<std::string>& input) {
  return ctx.has(input) ? ctx[input] : std::string();
}

// "prompt", then one chunk for each key of the extra information.
std::vector<TextChunk> text_chunks(Context& ctx, const std::string& prompt,
                                   const std::string& extra) {
  std::vector<TextChunk> chunks;
  if (!prompt.empty()) chunks.push_back({"prompt", python_json(prompt)});
  if (extra.empty()) return chunks;
  const Value record = parse_json(extra, "extra_pnginfo");
  for (std::uint32_t i = 0; record.is(HEDDLE_KIND_RECORD) && i < record.count(); ++i) {
    const std::string key = record.key(i);
    if (is_png_key(key))
      chunks.push_back({key, python_json(write_json(record.item(i)))});
    else
      ctx.warn("extra_pnginfo: PNG has no place for the key " + json_string(key) + "; left out");
  }
  return chunks;
}

struct SavePlan {
  const char* kind;  // "output", "temp"
  std::string prefix;
  int level;
};

void check_images(const Tensor& images) {
  const Shape shape = images.shape();
  const bool fits =
      shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] >= 1 && shape[3] <= 4;
  if (fits && images.dtype() == HEDDLE_F32) return;
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "images: a picture is (batch, height, width, 1 to 4 channels) of f32, this is (" +
                  text + ") of type " + std::to_string(images.dtype()) +
                  ". Decode it first (VAEDecode).");
}

Picture picture_of(Context& ctx, const Tensor& images, std::int64_t index,
                   std::pmr::memory_resource& memory) {
  const HostFloats values(ctx, images.slice(0, index, index + 1));
  Quantised quantised = quantise(values.elements(), memory);
  if (quantised.nan_count > 0)
    ctx.warn(
        "picture " + std::to_string(index) + ": " + std::to_string(quantised.nan_count) +
        " values are not numbers and become black. The model made them; try --compute with f32.");
  return {checked_cast<std::uint32_t>(images.size(2), "width"),
          checked_cast<std::uint32_t>(images.size(1), "height"),
          checked_cast<std::uint32_t>(images.size(3), "channels"), std::move(quantised.samples)};
}

void save(Context& ctx, const Tensor& images, const SavePlan& plan, const std::string& prompt,
          const std::string& extra) {
  check_images(images);
  PrefixFacts facts;
  facts.width = images.size(2);
  facts.height = images.size(1);
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &facts.now);
  Value nodes;
  facts.widget = [&](std::string_view node, std::string_view widget) -> std::optional<std::string> {
    if (!nodes && !prompt.empty()) nodes = parse_json(prompt, "prompt");
    return nodes ? find_widget(nodes, node, widget) : std::nullopt;
  };
  const Place place = find_place(output_folder(ctx, plan.kind), expand_prefix(plan.prefix, facts));
  std::uint64_t counter = next_counter(place);
  const std::vector<TextChunk> chunks = text_chunks(ctx, prompt, extra);
  const auto cancelled = [&] { return ctx.cancelled(); };
  const std::int64_t count = images.size(0);
  HostMemory memory(ctx);
  for (std::int64_t i = 0; i < count; ++i) {
    const Bytes file = write_png(picture_of(ctx, images, i, memory), chunks, plan.level, cancelled);
    const std::string_view content(reinterpret_cast<const char*>(file.data()), file.size());
    std::string name;
    do {  // until there is a name that no other program has taken
      name = file_name(place.stem, static_cast<std::size_t>(i), counter++);
    } while (!create_file((place.folder / name).string(), content));
    const std::string ui = "{\"images\": [{\"filename\": " + json_string(name) +
                           ", \"subfolder\": " + json_string(place.subfolder) +
                           ", \"type\": " + json_string(plan.kind) + "}]}";
    service<heddle_report_service>().wrote(ctx.raw(), (place.folder / name).c_str(), ui.c_str());
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
}

// The samples of one picture; how large its file will be nobody knows.
void infer_samples(Infer& question, const std::optional<Shape>& images) {
  if (!images || images->size() != 4) return;
  question.cost(0, 0, std::uint64_t((*images)[1] * (*images)[2] * (*images)[3]));
}

// Five letters, so that previews of different runs do not mix.
std::string random_letters() {
  std::random_device random;
  std::uniform_int_distribution<int> letter('a', 'z');
  std::string text(5, ' ');
  for (char& c : text) c = static_cast<char>(letter(random));
  return text;
}

}  // namespace

void SaveImage::execute(Context& ctx) {
  save(ctx, ctx[images], {"output", ctx[filename_prefix], kSavedLevel}, hidden_text(ctx, prompt),
       hidden_text(ctx, extra_pnginfo));
}
void SaveImage::infer(Infer& question) { infer_samples(question, question.shape(images)); }

void PreviewImage::execute(Context& ctx) {
  save(ctx, ctx[images], {"temp", "ComfyUI_temp_" + random_letters(), kPreviewLevel},
       hidden_text(ctx, prompt), hidden_text(ctx, extra_pnginfo));
}
void PreviewImage::infer(Infer& question) { infer_samples(question, question.shape(images)); }

}  // namespace heddle::image
