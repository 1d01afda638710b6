// Which jobs are alike: they take about as long, or load the same models. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/queue/job.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

struct JobKind {
  std::string kind;   // equal: the same nodes, links, models, sizes, steps; texts and seeds differ
  std::string model;  // the model files, by name; "": none
};

// The type that a class declares for an input: "INT"; "" where it is not known.
using InputType = std::function<std::string(std::string_view class_type, std::string_view input)>;

// `prompt`: in the API format.
JobKind kind_of_prompt(const Json& prompt, const InputType& type_of);

// Of the job's prompt, into the job.
void note_kind(NewJob& job, const heddle::Engine& engine);

}  // namespace heddle::engine
