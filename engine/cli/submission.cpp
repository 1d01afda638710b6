#include "engine/cli/submission.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/cli/variants.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

// A value of --set: JSON, or else a text.
Json value_of(const std::string& text) {
  try {
    return engine::parse_json(text, "value");
  } catch (const Error&) {
    return text;
  }
}

// Whether it would stand for several on a number.
bool may_be_several(const std::string& value) {
  return value.find("..") != value.npos || value.starts_with('[');
}

// What the server's node types declare of inputs: asked for once, and only if need be.
class InputTypes {
 public:
  InputTypes(const Json& workflow, const ServerClient& server)
      : workflow_(workflow), server_(server) {}

  // Of NODE.INPUT.
  bool has_node(const std::string& input) {
    return prompt().find(split_input_name(input, prompt()).node).has_value();
  }

  // `other` also where there is no such node or input: the server refuses it.
  InputKind kind_of(const std::string& asked) {
    const InputName name = split_input_name(asked, prompt());
    const std::optional<Workflow::Node> node = prompt().find(name.node);
    if (!node) return InputKind::other;
    const auto [at, is_new] = classes_.try_emplace(node->class_type);
    if (is_new) at->second = declared(node->class_type);
    const Json* inputs = at->second.find("input");
    for (const char* group : {"required", "optional"}) {
      const Json* of_group = inputs == nullptr ? nullptr : inputs->find(group);
      const Json* input = of_group == nullptr ? nullptr : of_group->find(name.input);
      if (input == nullptr || !input->is_array() || input->size() == 0) continue;
      const Json& type = input->at(std::size_t{0});
      return type.is_string() ? kind_of_type(type.as_string()) : InputKind::other;
    }
    return InputKind::other;
  }

 private:
  const Workflow& prompt() {
    if (!prompt_) {
      Json body = Json::object();
      const Json told = server_.post("/v1/validate", body.set("workflow", workflow_));
      prompt_ = Workflow::parse(engine::write_json(told.at("prompt")));
    }
    return *prompt_;
  }
  Json declared(const std::string& type) const {
    const Json all = server_.get(cat("/object_info/", url_segment(type)));
    const Json* info = all.find(type);
    return info == nullptr ? Json::object() : *info;
  }

  const Json& workflow_;
  const ServerClient& server_;
  std::optional<Workflow> prompt_;
  std::map<std::string, Json> classes_;  // by name, as /object_info tells it
};

std::vector<std::string> values_for(const Pair& set, InputTypes& types) {
  if (!may_be_several(set.value)) return {set.value};
  try {
    return values_of(set.value, types.kind_of(set.key));
  } catch (const Error& error) {
    throw Error(error.code(), cat(set.where, " ", set.key, ": ", error.what()));
  }
}

}  // namespace

void SubmittedSweep::add(const std::string& input, std::vector<std::string> values) {
  remove(input);
  inputs_.push_back({input, std::move(values)});
}

void SubmittedSweep::remove(const std::string& input) {
  std::erase_if(inputs_, [&](const Input& one) { return one.name == input; });
}

Json SubmittedSweep::json(bool zipped) const {
  Json sweep = Json::object(), inputs = Json::object();
  for (const Input& input : inputs_) {
    Json values = Json::array();
    for (const std::string& value : input.values) values.push(value_of(value));
    inputs.set(input.name, std::move(values));
  }
  sweep.set("mode", zipped ? "zipped" : "crossed");
  return std::move(sweep.set("inputs", std::move(inputs)));
}

std::string SubmittedSweep::label(std::size_t job, bool zipped) const {
  std::vector<std::string> parts;
  for (std::size_t i = inputs_.size(); i-- > 0;) {
    const std::vector<std::string>& values = inputs_[i].values;
    parts.push_back(cat(inputs_[i].name, "=", values[job % values.size()]));
    if (!zipped) job /= values.size();
  }
  std::ranges::reverse(parts);
  return engine::join(parts, ", ");
}

Submission submission_of(const Workflow& flow, const std::string& where, const Settings& settings,
                         const ServerClient& server) {
  const JobSettings& job = settings.job;
  Submission made;
  Json& body = made.body = Json::object();
  Json sets = Json::object(), only = Json::array();
  const Json workflow = engine::parse_json(flow.text(), where);
  InputTypes types(workflow, server);
  for (const Pair& pair : settings.sets) {
    // A configuration file serves workflows of all sorts.
    if (pair.origin == Origin::configuration && !types.has_node(pair.key)) continue;
    std::vector<std::string> values = values_for(pair, types);
    made.sweep.remove(pair.key);
    if (values.size() > 1)
      made.sweep.add(pair.key, std::move(values));
    else
      sets.set(pair.key, value_of(values.front()));
  }
  body.set("workflow", workflow);
  if (sets.size() > 0) body.set("set", std::move(sets));
  if (!made.sweep.is_empty()) body.set("sweep", made.sweep.json(job.zip));
  for (const Given& given : settings.only) only.push(given.text);
  if (only.size() > 0) body.set("only", std::move(only));
  if (job.priority) body.set("priority", *job.priority);
  if (job.front) body.set("front", true);
  if (job.background) body.set("background", true);
  if (job.paused) body.set("paused", true);
  if (!job.tag.empty()) body.set("tag", job.tag);
  if (!job.batch.empty()) body.set("batch", job.batch);
  if (job.repeats > 1) body.set("repeats", job.repeats);
  return made;
}

}  // namespace heddle::cli
