// Noise schedules by name, wherever they come from: the ones of this plugin, offered as
// heddle.field.noise_schedules/0 like those of any other, Descs are static data of the plugins; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include <heddle/plugin.hpp>

#include "model_sampling.h"
#include "noise_schedule.h"

namespace heddle::samplers {

struct NoiseSchedules {
  static constexpr std::string_view kind = HEDDLE_NOISE_SCHEDULES;
  static const heddle_list* list();
};

// The schedule of that name over the model's levels, for basic_sigmas() and ksampler_sigmas().
// Throws not_found, naming what is there. `sampling` is borrowed.
WholeSchedule schedule_named(const std::string& name, const ModelSampling& sampling);

}  // namespace heddle::samplers
