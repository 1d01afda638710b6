// What the nodes that save pictures share: where files go and under which names, what is told of
// the workflow in them, and pictures of 8 bits. One call's thread.
#pragma once

#include <heddle/node.hpp>
#include <memory_resource>
#include <string>
#include <vector>

#include "plugins/image/file_names.h"
#include "plugins/image/picture.h"

namespace heddle::image {

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

// Refuses what is no IMAGE (batch, height, width, 1 to 4 channels) of f32.
void check_images(const Tensor& images);

// Picture `index` in 8 bits; warns of numbers that are none. Taken from `memory`.
Picture picture_of(Context& ctx, const Tensor& images, std::int64_t index,
                   std::pmr::memory_resource& memory);

// Files under rising numbers, in the folder of a kind ("output", "temp").
class SavedFiles {
 public:
  // The prefix is expanded by the pictures and the workflow.
  SavedFiles(Context& ctx, const char* kind, const std::string& prefix, const Tensor& images,
             const std::string& prompt);
  // Writes a file under the next number that is free, and tells of it. ending: ".png". animated:
  // "true" or "false" where front ends are told, else NULL.
  void write(std::string_view content, const char* ending, std::size_t batch_number = 0,
             const char* animated = nullptr);

 private:
  Context& ctx_;
  const char* kind_;
  Place place_;
  std::uint64_t counter_;
};

}  // namespace heddle::image
