// Inputs that a node does not declare, because another input's value brings them with it.
#pragma once

#include <heddle/node.hpp>
#include <string>

#include "plugins/blocks/saved_files.h"
#include "plugins/video/media_writer.h"

namespace heddle::video {

// Empty where the workflow gives none of that name.
inline Value extra_input(Context& ctx, const std::string& name) {
  const auto& io = service<heddle_io_service>();
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
    if (name == io.extra_name(ctx.raw(), i)) return Value::share(io.extra(ctx.raw(), i));
  return {};
}

// The workflow as texts of a file: "prompt", then the keys of what else is told of it.
Tags workflow_tags(const blocks::WorkflowText& workflow);

}  // namespace heddle::video
