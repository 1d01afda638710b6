// Models on devices, as people ask for them: listed, loaded ahead of runs, pinned.
#include "heddle/models.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/facade/load_turn.h"
#include "engine/graph/model.h"
#include "engine/program/weight_sources.h"
#include "engine/resources/kept_models.h"
#include "engine/session/load_ahead.h"
#include "engine/tensor/value.h"

namespace heddle {

namespace {

using engine::cat;
using engine::quote;
using ModelsByIdentity = std::map<engine::Hash128, std::shared_ptr<const engine::Model>>;

void add_models(const engine::Value& value, ModelsByIdentity& models) {
  if (!value) return;
  if (const auto* model = std::get_if<std::shared_ptr<const engine::Model>>(&value->content))
    models.emplace((*model)->identity, *model);
  else if (const auto* list = std::get_if<engine::List>(&value->content))
    for (const engine::Value& item : list->items) add_models(item, models);
  else if (const auto* record = std::get_if<engine::Record>(&value->content))
    for (const auto& [name, inner] : record->fields) add_models(inner, models);
}

// Those that it calls: a loader may give more of them, an encoder for what is only decoded. Calls
// that nobody knows before the run are of any.
ModelsByIdentity models_of(const Ready& ready) {
  ModelsByIdentity called, all;
  for (const engine::NodeSpec& node : ready.inferred.nodes)
    for (const engine::CallSpec& call : node.calls) add_models(call.model, called);
  if (!called.empty() && ready.plan.pending.empty()) return called;
  for (const auto& [source, value] : ready.described.facts) add_models(value, all);
  all.insert(called.begin(), called.end());
  return all;
}

// Behind what holds the devices: a drain that was asked for meanwhile waits for that.
struct DrainsAtEnd {
  Engine::Data& data;
  ~DrainsAtEnd() { data.finish_drains(); }
};

// What one call has pinned: of a call that fails only that stays which was pinned before.
class NewlyKept {
 public:
  explicit NewlyKept(engine::Environment& environment) : environment_(environment) {}
  NewlyKept(const NewlyKept&) = delete;
  ~NewlyKept() {
    for (const Kept& each : kept_)
      engine::release_model_but(each.before, each.model, each.name, each.device, environment_);
  }
  // Before it is pinned.
  void add(const engine::Model& model, std::uint32_t device) {
    kept_.push_back({model.identity, engine::weights_name(model), device,
                     environment_.devices[device].weights->kept_of(model.identity)});
  }
  void stay() { kept_.clear(); }

 private:
  struct Kept {
    engine::Hash128 model;
    std::string name;
    std::uint32_t device;
    std::map<engine::Hash128, std::uint64_t> before;
  };
  engine::Environment& environment_;
  std::vector<Kept> kept_;
};

[[noreturn]] void refuse_disabled(std::string_view device) {
  throw engine::Error(engine::Code::unsupported,
                      cat(quote(device), " gets no work now: enable it first"));
}

ResidentModel told(const engine::ModelWeights& model, const std::string& device) {
  return {device, model.name, model.bytes, model.used, model.is_kept(), model.kept};
}

// A node type that shows whatever it is given: what it takes is loaded.
struct Shows {
  std::string class_type, input;
};
std::optional<Shows> shows_anything(const engine::Catalog& catalog) {
  for (const std::string_view name : catalog.type_names()) {
    const engine::NodeTypeRef type = catalog.find(name);
    if (!type->has(HEDDLE_NODE_SINK)) continue;
    std::vector<std::string> wanted;
    for (std::uint32_t i = 0; i < type->input_count(); ++i) {
      const heddle_port& input = type->input(i);
      if ((input.flags & (HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HIDDEN)) == 0 &&
          input.widget == nullptr)
        wanted.emplace_back(std::string_view(input.type) == "*" ? input.name : "");
    }
    if (wanted.size() == 1 && !wanted[0].empty()) return Shows{std::string(name), wanted[0]};
  }
  return std::nullopt;
}

bool chooses_of(const heddle_port& input, std::string_view folder) {
  const heddle_widget* const widget = input.widget;
  return widget != nullptr && widget->source != nullptr && folder == widget->source &&
         (widget->kind == HEDDLE_WIDGET_FILE || widget->kind == HEDDLE_WIDGET_FOLDER);
}

// The input that takes the file; nothing: it is no loader of that folder, or needs more than
// defaults give.
std::optional<std::string> file_input(const engine::NodeType& type, std::string_view folder) {
  std::optional<std::string> found;
  if (!type.has(HEDDLE_NODE_DESCRIBES) || type.output_count() == 0) return found;
  for (std::uint32_t i = 0; i < type.input_count(); ++i) {
    const heddle_port& input = type.input(i);
    if (chooses_of(input, folder)) {
      if (found) return std::nullopt;
      found = input.name;
    } else if (input.widget == nullptr &&
               (input.flags & (HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HIDDEN)) == 0) {
      return std::nullopt;
    }
  }
  return found;
}

std::vector<std::uint32_t> enabled_devices(std::string_view selector, Engine::Data& data) {
  const engine::Environment& environment = *data.environment;
  std::vector<std::uint32_t> named;
  for (std::uint32_t d = 0; d < environment.devices.size(); ++d)
    if (!selector.empty() && named_by(selector, environment.devices[d].state->device().names()) !=
                                 engine::NamedBy::nothing)
      named.push_back(d);
  if (named.empty())
    throw engine::Error(engine::Code::not_found,
                        cat("there is no device ", quote(selector),
                            "; there are: ", engine::all_device_names(environment.topology)));
  return named;
}

}  // namespace

std::vector<ResidentModel> Models::resident() const {
  return translate_errors([&] {
    std::vector<ResidentModel> all;
    for (const engine::RunDevice& device : engine_.data_->environment->devices)
      for (const engine::ModelWeights& each : device.weights->models())
        all.push_back(told(each, device.state->device().name()));
    return all;
  });
}

std::vector<ResidentModel> Models::load(const Workflow& workflow, std::string_view device,
                                        bool pinned) {
  return translate_errors([&] {
    Engine::Data& data = *engine_.data_;
    engine::Environment& environment = *data.environment;
    const std::vector<std::uint32_t> devices = enabled_devices(device, data);
    std::vector<ResidentModel> loaded;
    const DrainsAtEnd drains{data};
    {
      const auto held = environment.device_service.try_hold(devices);
      if (!held) refuse_disabled(device);
      const ModelsByIdentity models =
          models_of(data.prepare_to_show(Engine::Data::data_of(workflow), {}, false));
      if (models.empty())
        throw engine::Error(engine::Code::invalid_argument,
                            "there is nothing to load: no model of this workflow is known before "
                            "it runs");
      NewlyKept kept(environment);
      for (const std::uint32_t d : devices)
        for (const auto& [identity, model] : models) {
          if (pinned) kept.add(*model, d);
          engine::load_ahead(*model, d, pinned, environment, stop_);
        }
      kept.stay();
      for (const std::uint32_t d : devices)
        for (const engine::ModelWeights& each : environment.devices[d].weights->models())
          if (models.contains(each.model))
            loaded.push_back(told(each, environment.devices[d].state->device().name()));
    }
    return loaded;
  });
}

Workflow Models::loading(std::string_view file, std::string_view class_type,
                         std::string_view inputs) const {
  return translate_errors([&] {
    const engine::Catalog& catalog = *engine_.data_->plugins.catalog;
    const std::size_t slash = file.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == file.size())
      throw engine::Error(engine::Code::invalid_argument,
                          cat(quote(file),
                              " is no file in a folder of models, as "
                              "\"diffusion_models/flux1-dev.safetensors\""));
    const std::string_view folder = file.substr(0, slash), name = file.substr(slash + 1);
    struct Loader {
      std::string class_type, input;
      std::uint32_t inputs = 0;
    };
    std::optional<Loader> loader;
    std::vector<std::string> names;
    for (const std::string_view each : catalog.type_names()) {
      const engine::NodeTypeRef type = catalog.find(each);
      const std::optional<std::string> input = file_input(*type, folder);
      if (!input) continue;
      names.emplace_back(each);
      if (class_type.empty() ? loader && loader->inputs <= type->input_count() : each != class_type)
        continue;
      loader = Loader{std::string(each), *input, type->input_count()};
    }
    if (!loader)
      throw engine::Error(
          engine::Code::not_found,
          cat(class_type.empty() ? std::string("no node") : cat("no node ", quote(class_type)),
              " loads a model of the folder ", quote(folder), " by itself",
              names.empty() ? "" : cat("; these do: ", engine::join(names, ", "))));
    const std::optional<Shows> shows = shows_anything(catalog);
    if (!shows)
      throw engine::Error(engine::Code::unsupported,
                          "no plugin brings a node that takes any value, which a loader is "
                          "asked through; give a workflow instead");
    engine::Json given =
        inputs.empty() ? engine::Json::object() : engine::parse_json(inputs, "inputs");
    engine::Json link = engine::Json::array(), load = engine::Json::object(),
                 show = engine::Json::object(), taken = engine::Json::object(),
                 flow = engine::Json::object();
    given.set(loader->input, std::string(name));
    load.set("class_type", loader->class_type).set("inputs", std::move(given));
    link.push("load").push(std::int64_t{0});
    taken.set(shows->input, std::move(link));
    show.set("class_type", shows->class_type).set("inputs", std::move(taken));
    flow.set("load", std::move(load)).set("show", std::move(show));
    return engine_.parse(engine::write_json(flow), file);
  });
}

std::vector<ResidentModel> Models::set_pinned(std::string_view device, std::string_view model,
                                              bool pinned) {
  return translate_errors([&] {
    Engine::Data& data = *engine_.data_;
    engine::Environment& environment = *data.environment;
    const std::vector<std::uint32_t> devices = enabled_devices(device, data);
    // A drain lets go of what is pinned, and nothing may be pinned behind that.
    const DrainsAtEnd drains{data};
    const auto held = pinned ? environment.device_service.try_hold(devices) : std::nullopt;
    if (pinned && !held) refuse_disabled(device);
    std::vector<ResidentModel> changed;
    for (const std::uint32_t d : devices) {
      const engine::RunDevice& on = environment.devices[d];
      for (const engine::ModelWeights& each : on.weights->models()) {
        if (!model.empty() && !is_named(each.name, model)) continue;
        const engine::LoadTurns::Turn turn =
            take_load_turn(on.weights->load_turns(), each.model, each.name,
                           on.state->device().name(), {data.options.clock, stop_});
        if (pinned)
          engine::keep_model(each.model, each.name, on.weights->weights_of(each.model), d,
                             environment);
        else
          engine::release_model(each.model, d, environment);
        for (const engine::ModelWeights& now : on.weights->models())
          if (now.model == each.model) changed.push_back(told(now, on.state->device().name()));
      }
    }
    if (changed.empty())
      throw engine::Error(engine::Code::not_found,
                          cat("no model ", model.empty() ? "" : cat(quote(model), " "),
                              "is loaded on ", device, ". Load it first"));
    return changed;
  });
}

std::vector<ResidentModel> Models::pin(std::string_view device, std::string_view model) {
  return set_pinned(device, model, true);
}

std::uint64_t Models::unload(std::string_view device, std::string_view model) {
  return translate_errors([&] { return engine_.data_->unload(device, model, stop_); });
}

std::vector<ResidentModel> Models::unpin(std::string_view device, std::string_view model) {
  return set_pinned(device, model, false);
}

}  // namespace heddle
