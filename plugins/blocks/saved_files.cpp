#include "plugins/blocks/saved_files.h"

#include <charconv>
#include <ctime>
#include <random>

#include "plugins/blocks/json_text.h"

namespace heddle::blocks {
namespace {

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

Place place_of(Context& ctx, const char* kind, const std::string& prefix, const PixelSize& size,
               const std::string& prompt) {
  PrefixFacts facts;
  facts.width = size.width;
  facts.height = size.height;
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &facts.now);
  Value nodes;
  facts.widget = [&](std::string_view node, std::string_view widget) -> std::optional<std::string> {
    if (!nodes && !prompt.empty()) nodes = parse_json(prompt, "prompt");
    return nodes ? find_widget(nodes, node, widget) : std::nullopt;
  };
  return find_place(output_folder(ctx, kind), expand_prefix(prefix, facts));
}

}  // namespace

std::vector<WorkflowPart> workflow_parts(const WorkflowText& workflow) {
  std::vector<WorkflowPart> parts;
  if (!workflow.prompt.empty()) parts.push_back({"prompt", python_json(workflow.prompt)});
  if (workflow.extra.empty()) return parts;
  const Value record = parse_json(workflow.extra, "extra_pnginfo");
  for (std::uint32_t i = 0; record.is(HEDDLE_KIND_RECORD) && i < record.count(); ++i)
    parts.push_back({record.key(i), python_json(write_json(record.item(i)))});
  return parts;
}

std::string preview_prefix() {
  std::random_device random;
  std::uniform_int_distribution<int> letter('a', 'z');
  std::string text = "ComfyUI_temp_";
  for (int i = 0; i < 5; ++i) text += static_cast<char>(letter(random));
  return text;
}

SavedFiles::SavedFiles(Context& ctx, const char* kind, const std::string& prefix,
                       const PixelSize& size, const std::string& prompt)
    : ctx_(ctx),
      kind_(kind),
      place_(place_of(ctx, kind, prefix, size, prompt)),
      counter_(next_counter(place_)) {}

// The name of the file that was made.
std::string SavedFiles::make_next(const std::function<bool(const std::string& path)>& create,
                                  const char* ending, std::size_t batch_number) {
  std::string name;
  do {  // until there is a name that no other program has taken
    name = file_name(place_.stem, batch_number, counter_++, behind_number_ + std::string(ending));
  } while (!create((place_.folder / name).string()));
  return name;
}

void SavedFiles::make(const std::function<bool(const std::string& path)>& create,
                      const char* ending) {
  const std::string name = make_next(create, ending, 0);
  service<heddle_report_service>().wrote(ctx_.raw(), (place_.folder / name).c_str(), nullptr);
}

void SavedFiles::write(std::string_view content, const char* ending, std::size_t batch_number,
                       const ShownAs& shown) {
  const std::string name = make_next(
      [&](const std::string& path) { return create_file(path, content); }, ending, batch_number);
  std::string ui = "{" + json_string(shown.list) + ": [{\"filename\": " + json_string(name) +
                   ", \"subfolder\": " + json_string(place_.subfolder) +
                   ", \"type\": " + json_string(kind_) + "}]";
  if (shown.animated != nullptr) ui += std::string(", \"animated\": [") + shown.animated + "]";
  service<heddle_report_service>().wrote(ctx_.raw(), (place_.folder / name).c_str(),
                                         (ui + "}").c_str());
}

}  // namespace heddle::blocks
