// LTX-Video from texts to the latent of a video, with ComfyUI's nodes, over models whose weights
// follow from their names, against PyTorch (../goldens/make_ltxv_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct LtxvWorkflow : PlacedFixture {
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/ltxv/expected.safetensors";
  TensorFile expected{golden};

  LtxvWorkflow() {
    for (const char* kind : {"flow", "placed"})
      add(std::string("diffusion_models/") + kind, seeded_model(kind, false, "ltxv"));
  }

  static constexpr const char* kFlows = "plugins/goldens/ltxv_vae/expected.safetensors";
  // An autoencoder of 128 channels as "ltxv".
  void add_vae() const {
    std::vector<FileTensor> tensors = seeded_model("flow", false, "ltxv_vae");
    for (FileTensor& tensor : tensors)
      if (tensor.name == "per_channel_statistics.std-of-means")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
    add("vae/ltxv", tensors);
  }
  // model: the node "model".
  std::string nodes(const std::string& model = loaded("flow")) const {
    return heddle::engine::cat(model, R"(, "one": )", text("one", golden), R"(, "two": )",
                               text("two", golden));
  }
  // As the template. rate: of the conditioning.
  std::string flow(const std::string& rate = "24.0",
                   const std::string& model = loaded("flow")) const {
    return heddle::engine::cat(
        "{", nodes(model),
        R"(, "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": )", rate,
        R"(, "positive": ["one", 0], "negative": ["two", 0]}},
      "empty": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 128, "height": 96, "length": 17, "batch_size": 1}},
      "sigmas": {"class_type": "LTXVScheduler", "inputs": {"steps": 3, "max_shift": 2.05,
        "base_shift": 0.95, "stretch": true, "terminal": 0.1, "latent": ["empty", 0]}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0], "add_noise": true,
        "noise_seed": 7, "cfg": 3.0, "positive": ["told", 0], "negative": ["told", 1],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["empty", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // Five frames of the latent, which the model sees by the node "windows".
  std::string seen_in(const std::string& windows) const {
    std::string whole = flow();
    put(whole, R"("width": 128, "height": 96, "length": 17)",
        R"("width": 96, "height": 64, "length": 33)");
    put(whole, R"("model": ["model", 0])", R"("model": ["windows", 0])");
    put(whole, R"("look": {)",
        heddle::engine::cat(
            R"("windows": {"class_type": )", windows,
            R"(, "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "split_conds_to_windows": false}}, "look": {)"));
    return whole;
  }
  // Three of them at a time, told in frames of the video.
  static std::string in_frames(const char* schedule, const char* freenoise, const char* retained) {
    return heddle::engine::cat(
        R"("LTXVContextWindows", "inputs": {"model": ["model", 0], "context_length": 17, "context_overlap": 8, "context_schedule": ")",
        schedule, R"(", "freenoise": )", freenoise, R"(, "retain_first_frame": )", retained);
  }
  static constexpr const char* kPlain =
      R"("latent": {"class_type": "LatentFromBatch", "inputs": {"samples": ["empty", 0], "batch_index": 0, "length": 2}})";
  // "begun" of one picture, by the node "vae" of add_vae().
  static constexpr const char* kBegun =
      R"("vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltxv.safetensors"}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 128, "height": 96, "batch_size": 1, "color": 4227264}},
      "begun": {"class_type": "LTXVImgToVideo", "inputs": {"positive": ["one", 0], "negative": ["two", 0],
        "vae": ["vae", 0], "image": ["picture", 0], "width": 128, "height": 96, "length": 17,
        "batch_size": 1, "strength": 0.75}})";
  static void put(std::string& whole, const std::string& from, const std::string& to) {
    const std::size_t at = whole.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos), from);
    whole.replace(at, from.size(), to);
  }
  // latent: the node "latent", which may read "empty".
  std::string divided(const std::string& hints, const std::string& latent) const {
    return heddle::engine::cat(
        "{", nodes(loaded("placed")), ", ", latent,
        R"(, "empty": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 128, "height": 96, "length": 9, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["latent", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_workflows, LtxvWorkflow)

BOOST_AUTO_TEST_CASE(from_texts_to_the_latent_of_a_video_equals_pytorch) {
  const heddle::Results results = run_whole(flow(), {"out.output"});
  const double error =
      relative_error(results.floats("out.output", "samples"), expected.floats("flow.latent"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

// The rate counts, and one without a length is refused.
BOOST_AUTO_TEST_CASE(the_frame_rate_is_read) {
  const auto drawn = [&](const char* rate) {
    return run_whole(flow(rate), {"out.output"}).floats("out.output", "samples");
  };
  BOOST_TEST(relative_error(drawn("12.0"), expected.floats("flow.latent")) > 10 * kTolerance);
  const std::string refusal = engine_refusal([&] { drawn("0.0"); });
  BOOST_TEST(refusal.find("frame_rate is 0") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_CASE(a_video_in_context_windows_equals_pytorch) {
  const auto drawn = [&](const std::string& windows) {
    return run_whole(seen_in(windows), {"out.output"}).floats("out.output", "samples");
  };
  for (const auto& [retained, name] :
       {std::pair("false", "windows.latent"), {"true", "retained.latent"}}) {
    const double error = relative_error(drawn(in_frames("standard_static", "false", retained)),
                                        expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  // Frames of the video are those of the latent, eight for each.
  BOOST_TEST((
      drawn(in_frames("standard_uniform", "true", "true")) ==
      drawn(
          R"("ContextWindowsManual", "inputs": {"model": ["model", 0], "context_length": 3, "context_overlap": 1,
            "context_schedule": "standard_uniform", "dim": 2, "freenoise": true, "cond_retain_index_list": "0",
            "latent_retain_index_list": "0", "causal_window_fix": true)")));
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  hold([&](const std::string& hints) { return divided(hints, kPlain); }, {"layers", "data", "cfg"},
       {"sequence"}, 6 << 20);
}

// A mask of each of two frames.
BOOST_AUTO_TEST_CASE(dividing_frames_of_several_levels_keeps_bytes_or_nearly_numbers,
                     *boost::unit_test::label("long")) {
  const char* const masked =
      R"("a": {"class_type": "SolidMask", "inputs": {"value": 0.25, "width": 4, "height": 3}},
      "b": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 4, "height": 3}},
      "a_seen": {"class_type": "MaskToImage", "inputs": {"mask": ["a", 0]}},
      "b_seen": {"class_type": "MaskToImage", "inputs": {"mask": ["b", 0]}},
      "seen": {"class_type": "ImageBatch", "inputs": {"image1": ["a_seen", 0], "image2": ["b_seen", 0]}},
      "mask": {"class_type": "ImageToMask", "inputs": {"image": ["seen", 0], "channel": "red"}},
      "latent": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["empty", 0], "mask": ["mask", 0]}})";
  hold([&](const std::string& hints) { return divided(hints, masked); }, {"layers", "data", "cfg"},
       {"sequence"}, 6 << 20);
}

BOOST_AUTO_TEST_CASE(a_picture_begins_the_video) {
  add_vae();
  std::string whole = flow("24.0", heddle::engine::cat(loaded("flow"), ", ", kBegun));
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{R"("positive": ["one", 0], "negative": ["two", 0]}},
      "empty")",
                                            R"("positive": ["begun", 0], "negative": ["begun", 1]}},
      "empty")"},
        {R"("latent_image": ["empty", 0])", R"("latent_image": ["begun", 2])"}})
    put(whole, from, to);
  const heddle::Results results = run_whole(whole, {"begun.latent", "out.output"});
  const TensorFile wanted{tests_folder() / kFlows};
  const std::vector<float> begun = results.floats("begun.latent", "samples");
  std::vector<float> first;
  for (std::size_t i = 0; i < begun.size(); ++i)
    if (i % 36 < 12) first.push_back(begun[i]);
  const double error = relative_error(first, wanted.floats("flow.first")),
               end = relative_error(results.floats("out.output", "samples"),
                                    wanted.floats("flow.latent"));
  BOOST_TEST_MESSAGE("relative errors " << error << ", " << end);
  BOOST_TEST(error < kTolerance, "the first frame: relative error " << error);
  BOOST_TEST(end < kTolerance, "relative error " << end);
}

BOOST_AUTO_TEST_CASE(from_texts_to_the_frames_of_a_video_equals_pytorch) {
  add_vae();
  std::string whole = flow();
  const std::string end = R"("look": {)";
  whole.insert(whole.find(end),
               R"("vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltxv.safetensors"}},
      "frames": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": ["vae", 0]}},
      "seen": {"class_type": "test.look", "inputs": {"value": ["frames", 0]}},
      )");
  const std::vector<float> all = run_whole(whole, {"frames.IMAGE"}).floats("frames.IMAGE");
  BOOST_TEST_REQUIRE(all.size() == 17u * 96 * 128 * 3);
  std::vector<float> some;
  for (const std::size_t frame : {0, 7, 16})
    for (std::size_t y = 0; y < 16; ++y) {
      const auto row = all.begin() + std::ptrdiff_t((frame * 96 + y) * 128 * 3);
      some.insert(some.end(), row, row + 16 * 3);
    }
  const std::vector<float> wanted = TensorFile{tests_folder() / kFlows}.floats("flow.pictures");
  BOOST_TEST_REQUIRE(some.size() == wanted.size());
  double sum = 0;
  for (std::size_t i = 0; i < some.size(); ++i)
    sum += double(some[i] - wanted[i]) * double(some[i] - wanted[i]);
  const double decibels = -10 * std::log10(sum / double(some.size()));
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

// Of 5 x 10 places in 3 x 4: the last bits of the cells differ.
BOOST_AUTO_TEST_CASE(an_even_mask_is_even_when_it_is_resized) {
  const auto masked = [](const char* size) {
    return heddle::engine::cat(
        R"("mask": {"class_type": "SolidMask", "inputs": {"value": 0.8, )", size,
        R"(}}, "latent": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["empty", 0], "mask": ["mask", 0]}})");
  };
  const auto drawn = [&](const char* size) {
    const std::string nodes = masked(size);
    return run_whole(divided("", nodes.c_str()), {"out.LATENT"}).floats("out.LATENT", "samples");
  };
  BOOST_TEST(relative_error(drawn(R"("width": 10, "height": 5)"),
                            drawn(R"("width": 4, "height": 3)")) < kTolerance);
}

BOOST_AUTO_TEST_CASE(a_mask_of_a_part_of_a_frame_is_refused) {
  const char* const masked =
      R"("a": {"class_type": "SolidMask", "inputs": {"value": 0.0, "width": 4, "height": 3}},
      "b": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 2, "height": 3}},
      "mask": {"class_type": "MaskComposite", "inputs": {"destination": ["a", 0], "source": ["b", 0], "x": 0, "y": 0, "operation": "add"}},
      "latent": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["empty", 0], "mask": ["mask", 0]}})";
  const std::string refusal =
      engine_refusal([&] { run_whole(divided("", masked), {"out.LATENT"}); });
  BOOST_TEST(refusal.find("differs within frame 0") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  add_vae();
  // Of a first picture, also how noisy each of the three frames is, and that in windows of two.
  std::string begun = divided("", kBegun);
  put(begun, "placed", "flow");
  put(begun, R"("latent_image": ["latent", 0])", R"("latent_image": ["begun", 2])");
  std::string in_windows = begun;
  put(in_windows, R"("model": ["model", 0])", R"("model": ["windows", 0])");
  put(in_windows, R"("look": {)",
      R"("windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
        "context_length": 2, "context_overlap": 1, "context_schedule": "standard_static",
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 2,
        "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
        "latent_retain_index_list": "", "causal_window_fix": true}}, "look": {)");
  for (std::string drawn : {divided("", kPlain), begun, in_windows}) {
    for (const char* name : {"one", "two"})
      put(drawn, text(name, golden),
          R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})");
    heddle::Engine::Data told(options);  // a node that is cached makes no calls
    check_inference(told, drawn);
  }
}

// By the names of the file and by those of diffusers.
BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_both_names) {
  constexpr std::int64_t kWide = 256;
  const std::pair<const char*, const char*> targets[] = {
      {"diffusion_model.transformer_blocks.0.attn2.to_q", "transformer_blocks.0.attn2.to_q.weight"},
      {"transformer.time_embed.linear", "adaln_single.linear.weight"}};
  std::vector<FileTensor> factors, merged = seeded_model("flow", false, "ltxv");
  for (const auto& target : targets) {
    const std::string module = target.first, name = target.second;
    const auto found = std::find_if(merged.begin(), merged.end(),
                                    [&](const FileTensor& tensor) { return tensor.name == name; });
    BOOST_TEST_REQUIRE((found != merged.end()), name);
    const std::int64_t rows = found->shape[0];
    factors.push_back(seeded_tensor(module + ".lora_B.weight", {rows, 1}));
    factors.push_back(seeded_tensor(module + ".lora_A.weight", {1, kWide}));
    std::vector<float> values(found->bytes.size() / 4), up(static_cast<std::size_t>(rows)),
        down(kWide);
    std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
    std::memcpy(up.data(), factors.end()[-2].bytes.data(), up.size() * 4);
    std::memcpy(down.data(), factors.back().bytes.data(), down.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += up[i / kWide] * down[i % kWide];
    found->bytes = bytes_of_floats(values);
  }
  add("loras/style", factors);
  add("diffusion_models/merged", merged);
  const auto drawn = [&](const std::string& nodes_of_model) {
    return run_whole(flow("24.0", nodes_of_model), {"out.output"}).floats("out.output", "samples");
  };
  const std::vector<float> with_lora = drawn(
      R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "flow.safetensors", "weight_dtype": "default"}},
      "model": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0], "lora_name": "style.safetensors", "strength_model": 1.0}})");
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(loaded("merged"))),
               moved = relative_error(with_lora, expected.floats("flow.latent"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA moves it by " << moved);
}

// Without padding: what ComfyUI's mask leaves of the states is what transformers makes of the text
// alone.
BOOST_AUTO_TEST_CASE(t5_alone_reads_a_text_without_padding) {
  add("text_encoders/t5xxl_fp16", seeded_model("t5xxl", false, "sd3"));
  const heddle::Results results = run_whole(R"({
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "t5xxl_fp16.safetensors", "type": "ltxv", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
                                            {"first.value"});
  const TensorFile chroma{tests_folder() / "plugins/goldens/chroma/expected.safetensors"};
  const double error =
      relative_error(results.floats("first.value", "cross_attn"), chroma.floats("flow.states"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_text_of_another_encoder_is_refused) {
  add("text_encoders/t5xxl_fp16", seeded_model("t5xxl", false, "sd3"));
  const std::string refusal = engine_refusal([&] {
    run_whole(heddle::engine::cat("{", loaded("flow"), R"(,
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "t5xxl_fp16.safetensors", "type": "ltxv", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["clip", 0]}},
      "empty": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 128, "height": 96, "length": 9, "batch_size": 1}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 1,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["one", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})"),
              {"out.LATENT"});
  });
  for (const char* word : {"160", "40", "CLIPLoader, type ltxv"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_SUITE_END()
