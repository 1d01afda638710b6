// heddle/models.hpp - the models on the devices of an engine: which there are, loaded ahead of the
// runs that want them, and pinned, so that no other one displaces them. Link with libheddle.
//
//   heddle::Models models(engine);
//   models.load(engine.load("graphs/scene.json"), "cuda:0", true);
//
// Any thread. Failures are thrown as EngineError.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/engine.hpp"

namespace heddle {

// What of a model a device has.
struct ResidentModel {
  std::string device;       // its id
  std::string name;         // as MemoryUsage::owner: "flux diffusion_models/flux1-dev.safetensors"
  std::uint64_t bytes = 0;  // of its weights
  std::uint64_t bytes_in_use = 0;  // of them: by runs under way
  bool is_pinned = false;
  std::uint64_t bytes_pinned = 0;  // of them: that stay, all of them if they were loaded to
};

class Models {
 public:
  // The engine outlives it. What loads, or waits for a load, throws HEDDLE_CANCELLED soon after
  // `stop` is asked for: a load before its next weight.
  explicit Models(Engine& engine, std::stop_token stop = {})
      : engine_(engine), stop_(std::move(stop)) {}

  // By device, the largest first. Costs no question to a driver.
  std::vector<ResidentModel> resident() const;

  // Loads the models that the workflow calls, or that its nodes load where it calls none, with
  // their LoRAs, as a run would: weights that lie there and nobody uses go for them. `device` names
  // one or several, as EngineOptions::devices. Gives what is there of them then. Waits until it is.
  // Of several, those before one that throws are there and stay.
  // Throws HEDDLE_OUT_OF_MEMORY, with the figures and before anything goes, where one does not fit
  // beside what is in use, or would take what runs need that are under way or wait;
  // HEDDLE_UNSUPPORTED for a device that gets no work.
  std::vector<ResidentModel> load(const Workflow& workflow, std::string_view device,
                                  bool pinned = false);

  // What load() takes for one model file: "diffusion_models/flux1-dev.safetensors" is the file of
  // this name in this folder of models. `class_type`: the node that loads it; empty: the one that
  // needs the least besides. `inputs`: of that node, a JSON object; where it says nothing, the
  // node's defaults count. Throws HEDDLE_NOT_FOUND where nothing loads files of that folder.
  Workflow loading(std::string_view file, std::string_view class_type = {},
                   std::string_view inputs = {}) const;

  // From now on what is there of the model stays, whoever wants the room, until it is unpinned or
  // unloaded by its name, or the device is drained; load() brings all of it. `model`: as
  // ResidentModel::name, or its first word; for unpin() empty names all. Throws as load() does,
  // HEDDLE_NOT_FOUND for what is not there, and HEDDLE_CANCELLED where it is being loaded and ten
  // seconds of EngineOptions::clock were not enough.
  std::vector<ResidentModel> pin(std::string_view device, std::string_view model);
  std::vector<ResidentModel> unpin(std::string_view device, std::string_view model);

  std::uint64_t unload(std::string_view device, std::string_view model);  // Engine::unload()

 private:
  std::vector<ResidentModel> set_pinned(std::string_view device, std::string_view model,
                                        bool pinned);
  Engine& engine_;
  const std::stop_token stop_;
};

}  // namespace heddle
