// What the nodes that save files share: where they go and under which names, what is told of them,
// and what is told of the workflow in them. One call's thread.
#pragma once

#include <functional>
#include <heddle/node.hpp>
#include <string>
#include <vector>

#include "plugins/blocks/file_names.h"

namespace heddle::blocks {

// The workflow as nodes get it: JSON text, empty where there is none.
struct WorkflowText {
  std::string prompt, extra;  // extra: a JSON object
};
template <class Node>
WorkflowText workflow_text(Context& ctx) {
  const auto text = [&](const Input<std::string>& input) {
    return ctx.has(input) ? ctx[input] : std::string();
  };
  return {text(Node::prompt), text(Node::extra_pnginfo)};
}

// "prompt", then the keys of the extra information, each with its JSON text as Python writes it.
struct WorkflowPart {
  std::string key, json;
};
std::vector<WorkflowPart> workflow_parts(const WorkflowText& workflow);

// What front ends are told of a file: the list it stands in ("images", "audio"), and "true" or
// "false" for one that may move, else NULL.
struct ShownAs {
  const char* list = "images";
  const char* animated = nullptr;
};

// "ComfyUI_temp_" and five letters, so that previews of different runs do not mix.
std::string preview_prefix();

struct PixelSize {
  std::int64_t width = 0, height = 0;
};

// Files under rising numbers, in the folder of a kind ("output", "temp").
class SavedFiles {
 public:
  // The prefix is expanded by the size of the first picture (0 of what is none) and the workflow.
  SavedFiles(Context& ctx, const char* kind, const std::string& prefix, const PixelSize& size,
             const std::string& prompt);
  // Writes a file under the next number that is free, and tells of it. ending: ".png".
  void write(std::string_view content, const char* ending, std::size_t batch_number = 0,
             const ShownAs& shown = {});
  // The same for a file that `create` makes, and that no front end shows. It gives false, and makes
  // nothing, where something has that path.
  void make(const std::function<bool(const std::string& path)>& create, const char* ending);
  // From now on without the '_' that ComfyUI's older nodes put behind the number.
  void end_with_number() { behind_number_ = ""; }

 private:
  std::string make_next(const std::function<bool(const std::string& path)>& create,
                        const char* ending, std::size_t batch_number);

  Context& ctx_;
  const char *kind_, *behind_number_ = "_";
  Place place_;
  std::uint64_t counter_;
};

}  // namespace heddle::blocks
