// What tests of the diffusion nodes need beside them: values out of a golden file, and a sampler
// and a noise schedule that a plugin of somebody else adds.
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string_view>

#include <heddle/diffusion/noise_schedules.h>
#include <heddle/diffusion/samplers.h>
#include <heddle/node.hpp>
#include <heddle/parts.hpp>

#include "tests/support/tensor_file.h"

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Record;
using heddle::Tensor;
using heddle::Value;
using heddle::value_of;

Tensor load(Context& ctx, const std::string& path, const std::string& name) {
  const heddle::test::TensorFile file(path);
  const auto& entry = file.at(name);
  return ctx.upload(entry.shape, HEDDLE_F32, entry.bytes.data());
}

struct Conditioning {
  static constexpr heddle::Info info{"test.conditioning", 1, "Conditioning", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> prefix{"prefix", {}};
  static constexpr Input<std::string> option{
      "option", {}, "a field that is set to 1, as nodes would that samplers do not know"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(path, prefix, option, out);
  void execute(Context& ctx) {
    Record entry;
    entry.set("cross_attn", value_of(load(ctx, ctx[path], ctx[prefix] + ".cross_attn")));
    for (const char* field :
         {"pooled_output", "concat_latent_image", "concat_mask", "conditioning_byt5small"})
      if (const std::string name = ctx[prefix] + "." + field;
          heddle::test::TensorFile(ctx[path]).has(name))
        entry.set(field, value_of(load(ctx, ctx[path], name)));
    for (const char* states : {"penultimate", "last_hidden"})
      if (const std::string name = ctx[prefix] + "." + states;
          heddle::test::TensorFile(ctx[path]).has(name))
        entry.set("clip_vision_output",
                  Record().set(states, value_of(load(ctx, ctx[path], name))).value());
    if (const std::string key = ctx[option]; !key.empty()) entry.set(key, value_of(1.0));
    ctx[out] = heddle::list_of({entry.value()});
  }
};

// The same, known when plans are made.
struct GivenConditioning : Conditioning {
  static constexpr heddle::Info info{"test.given_conditioning",
                                     1,
                                     "Given conditioning",
                                     "test",
                                     "",
                                     HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
};

struct Latent {
  static constexpr heddle::Info info{"test.latent", 1, "Latent", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(path, name, out);
  void execute(Context& ctx) {
    ctx[out] = Record().set("samples", value_of(load(ctx, ctx[path], ctx[name]))).value();
  }
};

struct Mask {
  static constexpr heddle::Info info{"test.mask", 1, "Mask", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(path, name, out);
  void execute(Context& ctx) { ctx[out] = load(ctx, ctx[path], ctx[name]); }
};

struct Picture {
  static constexpr heddle::Info info{"test.image", 1, "Image", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(path, name, out);
  void execute(Context& ctx) { ctx[out] = load(ctx, ctx[path], ctx[name]); }
};

// Writes a byte for each row of what arrives, as soon as it is there.
struct FollowRows {
  static constexpr heddle::Info info{
      "test.follow_rows", 1, "Follow rows", "test", "", HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> rows{"rows", HEDDLE_PORT_HOST | HEDDLE_PORT_PARTS, "", "IMAGE"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr auto ports = heddle::ports(rows, path);
  static void execute(Context& ctx) {
    const Tensor all = ctx[rows];
    const std::string file = ctx[path];
    std::ofstream told(file, std::ios::binary);
    for (std::int64_t row = 0; row < all.size(0); ++row) {
      heddle::await_rows(ctx, all, row + 1);
      told.put('.').flush();
    }
  }
};

struct Sound {
  static constexpr heddle::Info info{"test.sound", 1, "Sound", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Input<std::int64_t> rate{"rate", {}};
  static constexpr Output<Value> out{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(path, name, rate, out);
  void execute(Context& ctx) {
    ctx[out] = Record()
                   .set("waveform", value_of(load(ctx, ctx[path], ctx[name])))
                   .set("sample_rate", value_of(std::int64_t(ctx[rate])))
                   .value();
  }
};

// What an encoder of sound heard: the states of all its layers (S, 1, T, K), and of how many
// points.
struct Heard {
  static constexpr heddle::Info info{"test.heard", 1, "Heard", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Input<std::int64_t> points{"points", {}};
  static constexpr Output<Value> out{"heard", 0, "", "AUDIO_ENCODER_OUTPUT"};
  static constexpr auto ports = heddle::ports(path, name, points, out);
  void execute(Context& ctx) {
    ctx[out] = Record()
                   .set("encoded_audio_all_layers", value_of(load(ctx, ctx[path], ctx[name])))
                   .set("audio_samples", value_of(std::int64_t(ctx[points])))
                   .value();
  }
};

// What a vision tower saw of pictures before its last layer (B, V, U), known when plans are made.
struct Seen {
  static constexpr heddle::Info info{"test.seen", 1,  "Seen",
                                     "test",      "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Output<Value> out{"seen", 0, "", "CLIP_VISION_OUTPUT"};
  static constexpr auto ports = heddle::ports(path, name, out);
  void execute(Context& ctx) {
    ctx[out] = Record().set("penultimate", value_of(load(ctx, ctx[path], ctx[name]))).value();
  }
};

// SAM3_TRACK_DATA of packed masks (T, N, H, W / 8) u8, of pictures of so many pixels.
struct Tracks {
  static constexpr heddle::Info info{"test.tracks", 1, "Tracks", "test"};
  static constexpr Input<std::string> path{"path", {}};
  static constexpr Input<std::string> name{"name", {}};
  static constexpr Input<std::int64_t> height{"height", {}};
  static constexpr Input<std::int64_t> width{"width", {}};
  static constexpr Output<Value> out{"track_data", 0, "", "SAM3_TRACK_DATA"};
  static constexpr auto ports = heddle::ports(path, name, height, width, out);
  void execute(Context& ctx) {
    const heddle::test::TensorFile file(ctx[path]);
    const auto& entry = file.at(ctx[name]);
    const auto whole = [](std::int64_t number) { return value_of(number); };
    ctx[out] =
        Record()
            .set("packed_masks", value_of(ctx.upload(entry.shape, HEDDLE_U8, entry.bytes.data())))
            .set("n_frames", whole(entry.shape[0]))
            .set("orig_size", heddle::list_of({whole(ctx[height]), whole(ctx[width])}))
            .value();
  }
};

// POSE_KEYPOINT of a JSON text.
struct Keypoints {
  static constexpr heddle::Info info{"test.keypoints", 1, "Keypoints", "test"};
  static constexpr Input<std::string> json{"json", {}};
  static constexpr Output<Value> out{"keypoints", 0, "", "POSE_KEYPOINT"};
  static constexpr auto ports = heddle::ports(json, out);
  void execute(Context& ctx) {
    const std::string text = ctx[json];
    heddle_value* raw = nullptr;
    heddle::check(heddle::service<heddle_json_service>().parse(
        heddle::services.host, {text.data(), text.size()}, "json", &raw));
    ctx[out] = Value::adopt(raw);
  }
};

// A list in its first entry's fields: what the facade can read.
struct First {
  static constexpr heddle::Info info{"test.first", 1, "First", "test"};
  static constexpr Input<Value> list{"list", HEDDLE_PORT_PASS, "", "*"};
  static constexpr Output<Value> out{"value", 0, "", "*"};
  static constexpr auto ports = heddle::ports(list, out);
  void execute(Context& ctx) { ctx[out] = ctx[list].item(0); }
};

// A SAMPLER with one option.
struct OneOption {
  static constexpr heddle::Info info{
      "test.one_option", 1, "One option", "test", "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> name{"name", {.text = "test_euler"}};
  static constexpr Input<std::string> option{"option", {.text = "part"}};
  static constexpr Input<double> value{"value", {.number = 1}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(name, option, value, sampler);
  void execute(Context& ctx) {
    const Value options =
        Record().set(std::string(ctx[option]), value_of(double(ctx[value]))).value();
    ctx[sampler] =
        Record().set("name", value_of(std::string(ctx[name]))).set("options", options).value();
  }
};

// Euler's step, x + (x - D) / sigma * (sigma' - sigma); with the option "part" so much of it.
heddle_status* euler_step(const heddle_host*, const heddle_sampler_desc*,
                          const heddle_sampler_run* run, std::uint32_t i,
                          void (*emit)(void*, const heddle_sampler_evaluation*), void* to) {
  heddle_sampler_evaluation e{};
  e.size = sizeof e;
  e.after = HEDDLE_SAMPLER_MOVE_START;
  e.sigma = run->sigmas[i];
  double part = 1;
  for (std::uint32_t k = 0; k < run->option_count; ++k)
    if (run->options[k].name == std::string_view("part")) part = run->options[k].value;
  const double kept = 1 - part * (1 - double(run->sigmas[i + 1]) / run->sigmas[i]);
  const heddle_sampler_term terms[] = {{HEDDLE_SAMPLER_START, 0, kept},
                                       {HEDDLE_SAMPLER_DENOISED, 0, 1 - kept}};
  e.next = {terms, 2};
  emit(to, &e);
  return nullptr;
}

heddle_status* halves(const heddle_host*, const heddle_noise_schedule_desc*,
                      const heddle_noise_levels* levels, std::uint32_t steps,
                      void (*push)(void*, float), void* to) {
  float sigma = levels->levels[levels->level_count - 1];
  for (std::uint32_t i = 0; i < steps; ++i, sigma /= 2) push(to, sigma);
  push(to, 0);
  return nullptr;
}

constexpr heddle_sampler_option_desc kPart{sizeof(heddle_sampler_option_desc), "part",
                                           "How much of a step is made.", 0.5, 1};
constexpr const heddle_sampler_option_desc* kOptions[] = {&kPart, nullptr};
constexpr heddle_sampler_desc kEuler{
    sizeof(heddle_sampler_desc), "test_euler", "", 0, &euler_step, nullptr, nullptr, kOptions};
// As one that was built before there were lists of options: whatever is given it takes.
constexpr heddle_sampler_desc kShort{offsetof(heddle_sampler_desc, options),
                                     "test_short",
                                     "",
                                     0,
                                     &euler_step,
                                     nullptr,
                                     nullptr,
                                     kOptions};
constexpr heddle_noise_schedule_desc kHalves{sizeof(heddle_noise_schedule_desc), "test_halves", "",
                                             &halves};

struct Samplers {
  static constexpr std::string_view kind = HEDDLE_SAMPLERS;
  static const heddle_list* list() { return heddle::descs<kEuler, kShort>(); }
};
struct Schedules {
  static constexpr std::string_view kind = HEDDLE_NOISE_SCHEDULES;
  static const heddle_list* list() { return heddle::descs<kHalves>(); }
};

HEDDLE_PLUGIN("org.heddle.test.field_values", "1.0.0", Conditioning, GivenConditioning, Latent,
              Mask, Picture, FollowRows, Sound, Heard, Seen, Tracks, Keypoints, First, OneOption,
              Samplers, Schedules)

}  // namespace
