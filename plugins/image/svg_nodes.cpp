#include "plugins/image/svg_nodes.h"

#include "plugins/blocks/json_text.h"
#include "plugins/blocks/saved_files.h"

namespace heddle::image {
namespace {

using blocks::WorkflowPart;
using blocks::WorkflowText;

// What ComfyUI puts behind each opening tag of a drawing; empty without a workflow.
std::string svg_metadata(const WorkflowText& workflow) {
  std::string parts;
  for (const WorkflowPart& part : blocks::workflow_parts(workflow))
    parts += (parts.empty() ? "" : ",\n") + blocks::json_string(part.key) + ": " + part.json;
  if (parts.empty()) return {};
  // The end of a CDATA section inside of it would end it.
  for (std::size_t at = parts.find("]]>"); at != parts.npos; at = parts.find("]]>", at))
    parts.replace(at, 3, "]]\\u003e");
  return "\n  <metadata>\n<![CDATA[\n{" + parts + "}\n]]>\n</metadata>\n";
}

std::string with_metadata(const std::string& drawing, const std::string& metadata) {
  std::string text;
  std::size_t done = 0;
  for (std::size_t tag = drawing.find("<svg"); tag != drawing.npos && !metadata.empty();
       tag = drawing.find("<svg", done)) {
    const std::size_t end = drawing.find('>', tag);
    if (end == drawing.npos) break;
    text.append(drawing, done, end + 1 - done).append(metadata);
    done = end + 1;
  }
  return text.append(drawing, done);
}

}  // namespace

void SaveSVGNode::execute(Context& ctx) {
  const Value drawings = ctx[svg];
  const WorkflowText workflow = blocks::workflow_text<SaveSVGNode>(ctx);
  const std::string metadata = svg_metadata(workflow);
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {}, workflow.prompt);
  const auto save = [&](const Value& drawing, std::size_t number) {
    files.write(with_metadata(drawing.as<std::string>(), metadata), ".svg", number);
  };
  if (drawings.is(HEDDLE_KIND_LIST))
    for (std::uint32_t i = 0; i < drawings.count(); ++i) save(drawings.item(i), i);
  else
    save(drawings, 0);
  ctx[out] = drawings;
}

}  // namespace heddle::image
