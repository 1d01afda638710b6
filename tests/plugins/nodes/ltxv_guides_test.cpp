// LTXVAddGuide, LTXVCropGuides and LTXVImgToVideoInplace with tiny models of LTX-Video whose
// weights follow from their names, against PyTorch (../goldens/make_ltxv_guide_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct LtxvGuides : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltxv_guides/expected.safetensors";
  const std::filesystem::path texts = tests_folder() / "plugins/goldens/ltxv/expected.safetensors";
  TensorFile expected{golden};

  LtxvGuides() {
    add("diffusion_models/flow", seeded_model("flow", false, "ltxv"));
    std::vector<FileTensor> tensors = seeded_model("flow", false, "ltxv_vae");
    for (FileTensor& tensor : tensors)
      if (tensor.name == "per_channel_statistics.std-of-means")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
    add("vae/ltxv", tensors);
  }

  // A node "name" that adds pictures of "image" at a frame to what "from" gave.
  static std::string guide(const char* name, const char* from, const char* image, int frame,
                           const char* strength) {
    const bool is_first = std::string(from) == "empty";
    const std::string texts_of =
        is_first ? R"("positive": ["one", 0], "negative": ["two", 0], "latent": ["empty", 0])"
                 : cat(R"("positive": [")", from, R"(", 0], "negative": [")", from,
                       R"(", 1], "latent": [")", from, R"(", 2])");
    return cat("\"", name, R"(": {"class_type": "LTXVAddGuide", "inputs": {)", texts_of,
               R"(, "vae": ["vae", 0], "image": [")", image, R"(", 0], "frame_idx": )", frame,
               R"(, "strength": )", strength, "}}");
  }
  std::string sources(const std::string& one, const std::string& two) const {
    return cat(
        loaded("flow"), R"(, "one": )", one, R"(, "two": )", two,
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltxv.safetensors"}},
      "empty": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 128, "height": 96, "length": 17, "batch_size": 1}},
      "nine": {"class_type": "test.image", "inputs": {"name": "pictures", "path": ")",
        golden.string(),
        R"("}}, "first": {"class_type": "ImageFromBatch", "inputs": {"image": ["nine", 0], "batch_index": 0, "length": 1}})");
  }
  // changes: of the model that the sampler is given, "model".
  std::string flow(const std::string& one, const std::string& two,
                   const std::string& model = "model") const {
    return cat(
        "{", sources(one, two), ", ", guide("a", "empty", "first", -1, "0.75"), ", ",
        guide("b", "a", "nine", 0, "1.0"), ", ", guide("c", "b", "nine", 9, "0.5"),
        R"(, "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": 24.0, "positive": ["c", 0], "negative": ["c", 1]}},
      "sigmas": {"class_type": "LTXVScheduler", "inputs": {"steps": 3, "max_shift": 2.05,
        "base_shift": 0.95, "stretch": true, "terminal": 0.1, "latent": ["c", 2]}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustom", "inputs": {"model": [")",
        model,
        R"(", 0], "add_noise": true, "noise_seed": 7, "cfg": 3.0, "positive": ["told", 0], "negative": ["told", 1],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["c", 2]}},
      "crop": {"class_type": "LTXVCropGuides", "inputs": {"positive": ["told", 0], "negative": ["told", 1], "latent": ["drawn", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["crop", 2]}}})");
  }
  std::string flow() const { return flow(text("one", texts), text("two", texts)); }
  // A LoRA that changes nothing, whose file says how large guides are.
  void add_small_lora(const char* key, const char* factor, const char* name = "small") const {
    std::filesystem::create_directories(folder / "models/loras");
    const auto zeros = [](const char* name, std::vector<std::int64_t> shape) {
      return FileTensor{name, "F32", shape,
                        std::string(std::size_t(4 * shape[0] * shape[1]), char(0))};
    };
    const std::int64_t width = 32 * 8;
    write_safetensors(
        folder / "models/loras" / cat(name, ".safetensors"),
        {zeros("diffusion_model.transformer_blocks.0.attn1.to_q.lora_A.weight", {2, width}),
         zeros("diffusion_model.transformer_blocks.0.attn1.to_q.lora_B.weight", {width, 2})},
        {{"format", "pt"}, {key, factor}});
  }
  // The nine pictures a quarter as large, then one at the end: "c".
  std::string small_flow(const std::string& one, const std::string& two, const char* hints = "",
                         const char* mask = R"(, "attention_mask": ["seen", 0])") const {
    std::string nodes = sources(one, two);
    const std::string size = R"("width": 128, "height": 96)";
    nodes.replace(nodes.find(size), size.size(), R"("width": 128, "height": 128)");
    std::string small = guide("b", "empty", "nine", 0, "0.75");
    small.replace(small.size() - 2, 2,
                  cat(R"(, "iclora_parameters": ["told_size", 0])", mask, "}}"));
    return cat(
        "{", nodes,
        R"(, "small": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "small.safetensors", "strength_model": 1.0}},
      "told_size": {"class_type": "GetICLoRAParameters", "inputs": {"iclora_model": ["small", 0]}},
      "seen": {"class_type": "test.mask", "inputs": {"name": "weights", "path": ")",
        golden.string(), R"("}}, )", small, ", ", guide("c", "b", "first", -1, "1.0"),
        R"(, "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": 24.0, "positive": ["c", 0], "negative": ["c", 1]}},
      "sigmas": {"class_type": "LTXVScheduler", "inputs": {"steps": 3, "max_shift": 2.05,
        "base_shift": 0.95, "stretch": true, "terminal": 0.1, "latent": ["c", 2]}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustom", "inputs": {"model": ["small", 0], "add_noise": true, "noise_seed": 7, "cfg": 3.0, "positive": ["told", 0], "negative": ["told", 1],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["c", 2]})",
        hints,
        R"(}, "crop": {"class_type": "LTXVCropGuides", "inputs": {"positive": ["told", 0], "negative": ["told", 1], "latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["crop", 2], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // Of which how many levels there are is known before a run.
  static std::string with_told_levels(std::string flow) {
    const std::string from =
        R"({"class_type": "LTXVScheduler", "inputs": {"steps": 3, "max_shift": 2.05,
        "base_shift": 0.95, "stretch": true, "terminal": 0.1, "latent": ["c", 2]}})";
    const std::size_t at = flow.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos));
    return flow.replace(at, from.size(),
                        R"({"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.5, 0.0"}})");
  }
  // Why "out" of these nodes is not made; at: its output that is a LATENT.
  std::string refusal(const std::string& nodes, int at) {
    return engine_refusal([&] {
      run_whole(
          cat("{", sources(text("one", texts), text("two", texts)), ", ", nodes,
              R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", )", at, "]}}}"),
          {"out.latent"});
    });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_guides, LtxvGuides)

BOOST_AUTO_TEST_CASE(a_video_that_passes_pictures_equals_pytorch) {
  const Results results = run_whole(flow(), {"c.latent", "crop.latent"});
  const double latent =
                   relative_error(results.floats("c.latent", "samples"), expected.floats("latent")),
               mask = relative_error(results.floats("c.latent", "noise_mask"),
                                     expected.floats("mask")),
               end =
                   relative_error(results.floats("crop.latent", "samples"), expected.floats("end"));
  BOOST_TEST_MESSAGE("relative errors " << latent << ", " << mask << ", " << end);
  BOOST_TEST(latent < kTolerance, "what is added: relative error " << latent);
  BOOST_TEST(mask < 1e-6, "the mask: relative error " << mask);
  BOOST_TEST(end < kTolerance, "relative error " << end);
}

// Pictures a quarter as large as the video have a quarter of its tokens, and a mask tells how much
// each of them is attended to.
BOOST_AUTO_TEST_CASE(a_video_that_passes_small_pictures_by_a_mask_equals_pytorch) {
  add_small_lora("modelspec.reference_downscale_factor", "2.0");
  const Results results =
      run_whole(small_flow(text("one", texts), text("two", texts)), {"c.latent", "out.LATENT"});
  const auto error = [&](const char* made, const char* field, const char* wanted) {
    return relative_error(results.floats(made, field), expected.floats(wanted));
  };
  const double latent = error("c.latent", "samples", "small.latent"),
               mask = error("c.latent", "noise_mask", "small.mask"),
               end = error("out.LATENT", "samples", "small.end");
  BOOST_TEST_MESSAGE("relative errors " << latent << ", " << mask << ", " << end);
  BOOST_TEST(latent < kTolerance, "what is added: relative error " << latent);
  BOOST_TEST(mask < 1e-6, "the mask: relative error " << mask);
  BOOST_TEST(end < kTolerance, "relative error " << end);
}

// Without the mask it is another video.
BOOST_AUTO_TEST_CASE(the_mask_of_a_guide_counts) {
  add_small_lora("reference_downscale_factor", "2");
  const Results results =
      run_whole(small_flow(text("one", texts), text("two", texts), "", ""), {"out.LATENT"});
  BOOST_TEST(relative_error(results.floats("out.LATENT", "samples"), expected.floats("small.end")) >
             10 * kTolerance);
}

// A later LoRA that says nothing of it means 1, and so does what is no number. The latent's sides
// are not divisible by 2.
BOOST_AUTO_TEST_CASE(the_last_lora_tells_how_large_guides_are) {
  add_small_lora("reference_downscale_factor", "2");
  const auto given = [&](const char* key, const char* factor) {
    add_small_lora(key, factor, "other");
    std::string one = guide("out", "empty", "first", 0, "1.0");
    one.replace(one.size() - 2, 2, R"(, "iclora_parameters": ["told_size", 0]}})");
    return refusal(
        cat(R"("small": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "small.safetensors", "strength_model": 1.0}},
      "other": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["small", 0], "lora_name": "other.safetensors", "strength_model": 1.0}},
      "told_size": {"class_type": "GetICLoRAParameters", "inputs": {"iclora_model": ["other", 0]}}, )",
            one),
        2);
  };
  for (const auto& [key, factor] :
       {std::pair("trained_by", "2"), std::pair("reference_downscale_factor", "two"),
        std::pair("reference_downscale_factor", "1.5 or so"),
        std::pair("reference_downscale_factor", "-3")})
    BOOST_TEST(given(key, factor) == "", key << " = " << factor);
  BOOST_TEST(given("its.reference_downscale_factor", "2.5").find("divisible by 2,") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(dividing_small_guides_keeps_bytes_or_nearly_numbers,
                     *boost::unit_test::label("long")) {
  add_small_lora("reference_downscale_factor", "2");
  hold(
      [&](const std::string& hints) {
        return with_told_levels(small_flow(text("one", texts), text("two", texts), hints.c_str()));
      },
      {"layers", "cfg"}, {"sequence"}, 8 << 20, 128 * 3 * 16);
}

// Without what the conditioning tells, guides would lie behind the video's end.
BOOST_AUTO_TEST_CASE(where_guides_are_counts) {
  std::string whole = flow();
  const std::string told = R"("positive": ["c", 0], "negative": ["c", 1]}},
      "sigmas")";
  const std::size_t at = whole.find(told);
  BOOST_TEST_REQUIRE((at != std::string::npos));
  whole.replace(at, told.size(), R"("positive": ["one", 0], "negative": ["two", 0]}}, "sigmas")");
  const std::vector<float> all =
      run_whole(whole, {"drawn.output"}).floats("drawn.output", "samples");
  std::vector<float> own;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % (7 * 12) < 3 * 12) own.push_back(all[i]);
  BOOST_TEST(relative_error(own, expected.floats("end")) > 10 * kTolerance);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  const std::string random =
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})";
  const std::string given =
      cat(R"({"class_type": "test.image", "inputs": {"name": "pictures", "path": ")",
          golden.string(), R"("}})");
  std::string nodes = sources(random, random);
  const std::size_t at = nodes.find(given);
  BOOST_TEST_REQUIRE((at != std::string::npos));
  nodes.replace(
      at, given.size(),
      R"({"class_type": "EmptyImage", "inputs": {"width": 32, "height": 24, "batch_size": 9, "color": 255}})");
  const std::string whole = cat(
      "{", nodes, ", ", guide("a", "empty", "first", -1, "0.75"), ", ",
      guide("b", "a", "nine", 9, "0.5"),
      R"(, "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["b", 0],
        "negative": ["b", 1], "latent_image": ["b", 2], "denoise": 1.0}},
      "crop": {"class_type": "LTXVCropGuides", "inputs": {"positive": ["b", 0], "negative": ["b", 1], "latent": ["drawn", 0]}},
      "begun": {"class_type": "LTXVImgToVideoInplace", "inputs": {"vae": ["vae", 0], "image": ["nine", 0],
        "latent": ["empty", 0], "strength": 0.5, "bypass": false}},
      "seen": {"class_type": "test.look", "inputs": {"value": ["begun", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["crop", 2]}}})");
  Engine::Data told(options);  // a node that is cached makes no calls
  check_inference(told, whole);
}

BOOST_AUTO_TEST_CASE(calls_with_small_guides_are_told_before_a_run) {
  add_small_lora("reference_downscale_factor", "2");
  EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  const std::string random =
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})";
  std::string whole = small_flow(random, random);
  const auto put = [&](const std::string& from, const char* to) {
    const std::size_t at = whole.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos), from);
    whole.replace(at, from.size(), to);
  };
  put(cat(R"({"class_type": "test.image", "inputs": {"name": "pictures", "path": ")",
          golden.string(), R"("}})"),
      R"({"class_type": "EmptyImage", "inputs": {"width": 32, "height": 24, "batch_size": 9, "color": 255}})");
  put(cat(R"({"class_type": "test.mask", "inputs": {"name": "weights", "path": ")", golden.string(),
          R"("}})"),
      R"({"class_type": "SolidMask", "inputs": {"value": 0.5, "width": 10, "height": 6}})");
  Engine::Data told(options);  // a node that is cached makes no calls
  check_inference(told, with_told_levels(whole));
}

BOOST_AUTO_TEST_CASE(pictures_are_put_into_a_latent_that_is_there) {
  const auto made = [&](const char* bypass) {
    return run_whole(
        cat("{", sources(text("one", texts), text("two", texts)),
            R"(, "out": {"class_type": "LTXVImgToVideoInplace", "inputs": {"vae": ["vae", 0],
        "image": ["nine", 0], "latent": ["empty", 0], "strength": 0.25, "bypass": )",
            bypass, "}}, ", kLook, "}"),
        {"out.latent"});
  };
  const Results results = made("false");
  const std::vector<float> samples = results.floats("out.latent", "samples"),
                           wanted = expected.floats("latent"),
                           mask = results.floats("out.latent", "noise_mask");
  // The nine pictures are frames 4 and 5 of the golden, and the first two here.
  std::vector<float> begun, behind, golden_begun;
  for (std::size_t c = 0; c < 128; ++c)
    for (std::size_t i = 0; i < 36; ++i) (i < 24 ? begun : behind).push_back(samples[c * 36 + i]);
  for (std::size_t c = 0; c < 128; ++c)
    for (std::size_t i = 0; i < 24; ++i) golden_begun.push_back(wanted[c * 84 + 48 + i]);
  const double error = relative_error(begun, golden_begun);
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST((behind == std::vector<float>(behind.size(), 0.0f)));
  BOOST_TEST((mask == std::vector<float>{0.75f, 0.75f, 1.0f}));
  for (const float number : made("true").floats("out.latent", "samples"))
    BOOST_TEST_REQUIRE(number == 0.0f);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const std::string& nodes, int at, const char* words) {
    const std::string text = refusal(nodes, at);
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(guide("out", "empty", "first", 17, "1.0"), 2, "are frames 3 to 3 of the latent");
  add_small_lora("reference_downscale_factor", "2");
  std::string small = guide("out", "empty", "first", 0, "1.0");
  small.replace(small.size() - 2, 2, R"(, "iclora_parameters": ["told_size", 0]}})");
  says(
      R"("small": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "small.safetensors", "strength_model": 1.0}},
      "told_size": {"class_type": "GetICLoRAParameters", "inputs": {"iclora_model": ["small", 0]}}, )" +
          small,
      2, "4 x 3 places are not divisible by 2");
  const std::string many =
      R"("more": {"class_type": "ImageBatch", "inputs": {"image1": ["nine", 0], "image2": ["nine", 0]}},
      "many": {"class_type": "ImageBatch", "inputs": {"image1": ["more", 0], "image2": ["nine", 0]}}, )";
  says(
      many +
          R"("out": {"class_type": "LTXVImgToVideoInplace", "inputs": {"vae": ["vae", 0], "image": ["many", 0],
        "latent": ["empty", 0], "strength": 1.0, "bypass": false}})",
      0, "25 pictures are 4 frames of the latent, which has 3");
  says(
      R"("pair": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["empty", 0], "audio_latent": ["empty", 0]}}, )"
      R"("out": {"class_type": "LTXVImgToVideoInplace", "inputs": {"vae": ["vae", 0], "image": ["first", 0],
        "latent": ["pair", 0], "strength": 1.0, "bypass": false}})",
      0, "pictures and sound");
}

BOOST_AUTO_TEST_CASE(windows_along_the_frames_are_refused) {
  std::string whole = flow(text("one", texts), text("two", texts), "windows");
  whole.insert(
      1, R"("windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
        "context_length": 2, "context_overlap": 1, "context_schedule": "standard_static",
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 2,
        "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
        "latent_retain_index_list": "", "causal_window_fix": true}}, )");
  const std::string text = engine_refusal([&] { run_whole(whole, {"crop.latent"}); });
  BOOST_TEST(text.find("Use one of the two") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
