#include "text_file_nodes.h"

#include "json_dump.h"
#include "plugins/blocks/json_text.h"
#include "plugins/blocks/saved_files.h"

namespace heddle::loaders {
namespace {

// With indents where it is JSON, else as it is.
std::string laid_out(const std::string& text) {
  heddle_value* value = nullptr;
  heddle_status* failed = service<heddle_json_service>().parse(
      services.host, {text.data(), text.size()}, "text", &value);
  if (failed == nullptr) return json_dump(Value::adopt(value), 2);
  services.host->status_free(failed);
  return text;
}

}  // namespace

void SaveText::execute(Context& ctx) {
  const std::string given = ctx[text], kind = ctx[format];
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {1, 1},
                           blocks::workflow_text<SaveText>(ctx).prompt);
  files.end_with_number();
  service<heddle_report_service>().wrote(
      ctx.raw(), nullptr, ("{\"text\": [" + blocks::json_string(given) + "]}").c_str());
  files.write(kind == "json" ? laid_out(given) : given, ("." + kind).c_str(), 0, {.list = "files"});
  ctx[out] = given;
}

}  // namespace heddle::loaders
