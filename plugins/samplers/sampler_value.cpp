#include "sampler_value.h"

namespace heddle::samplers {

Value sampler_record(const SamplerChoice& choice) {
  Record record;
  record.set("name", value_of(choice.name))
      .set("eta", value_of(choice.eta))
      .set("noise_factor", value_of(choice.noise_factor));
  if (choice.growth)
    record.set("growth", Record()
                             .set("scale", value_of(choice.growth->scale))
                             .set("steps", value_of(choice.growth->steps))
                             .set("method", value_of(choice.growth->method))
                             .value());
  if (choice.frames_per_block > 0)
    record.set("frames_per_block", value_of(choice.frames_per_block));
  if (choice.options.empty()) return record.value();
  Record options;
  for (const auto& [name, value] : choice.options) options.set(name, value_of(value));
  return record.set("options", options.value()).value();
}

SamplerChoice sampler_choice(const Value& sampler) {
  SamplerChoice choice{.name = sampler.get<std::string>("name", ""),
                       .eta = sampler.get<double>("eta", 1.0),
                       .noise_factor = sampler.get<double>("noise_factor", 1.0)};
  if (const Value growth = sampler.field("growth"))
    choice.growth = Growth{growth.get<double>("scale", 1.0), growth.get<std::int64_t>("steps", -1),
                           growth.get<std::string>("method", "bislerp")};
  choice.frames_per_block = sampler.get<std::int64_t>("frames_per_block", 0);
  const Value options = sampler.field("options");
  for (std::uint32_t i = 0; i < options.count(); ++i)
    choice.options.emplace_back(options.key(i), options.item(i).as<double>());
  if (!choice.options.empty()) check_options(sampler_named(choice.name), choice.options);
  return choice;
}

}  // namespace heddle::samplers
