// Texts for Wan by CLIPLoader's type `wan`: UMT5 with the vocabulary that its file carries, and the
// frames of videos of them, against PyTorch (../goldens/make_umt5_goldens.py); on several devices
// and with little memory the same bytes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "engine/base/text.h"
#include "heddle/models.hpp"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr const char* kUmt5File = "umt5_xxl_fp8_e4m3fn_scaled.safetensors";
constexpr std::size_t kUmt5Tokens = 512, kUmt5Width = 40;

struct Umt5Texts : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/umt5/expected.safetensors"};

  static std::string spiece() {
    return read_text(tests_folder() / "plugins/goldens/umt5/spiece.model");
  }
  static std::vector<FileTensor> encoder(bool with_vocabulary = true) {
    std::vector<FileTensor> tensors = seeded_model("text", false, "umt5");
    if (with_vocabulary)
      tensors.push_back({"spiece_model", "U8", {std::int64_t(spiece().size())}, spiece()});
    return tensors;
  }
  void add_encoder(const std::vector<FileTensor>& tensors) const {
    std::filesystem::create_directories(folder / "models/text_encoders");
    write_safetensors(folder / "models/text_encoders" / kUmt5File, tensors);
  }
  // Of one of the two models, whose weights follow from names that begin with its own.
  void add_transformer(const std::string& file, const std::string& kind) const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "umt5");
    for (FileTensor& tensor : tensors) tensor.name.erase(0, kind.size() + 1);
    add("diffusion_models/" + file, tensors);
  }
  static std::string clip(const std::string& type = "wan") {
    return cat(R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")", kUmt5File,
               R"(", "type": ")", type, R"(", "device": "default"}})");
  }
  static std::string encoded(const std::string& text, const std::string& from = "clip") {
    return cat(R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")", text, R"(", "clip": [")",
               from, R"(", 0]}})");
  }
  static std::string texts() {
    return cat(clip(), R"(, "one": )", encoded("a red fox walks through the deep snow"),
               R"(, "two": )", encoded("blurred, ugly, слишком темно"));
  }
  // States of a text (tokens, width), by the nodes that make "clip".
  std::vector<float> states(const std::string& text, const std::string& nodes = clip(),
                            const std::string& from = "clip") {
    return run_whole(
               cat("{", nodes, R"(, "text": )", encoded(text, from),
                   R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
               {"entry.value"})
        .floats("entry.value", "cross_attn");
  }
  void compare_states(std::vector<float> made, const std::string& name) const {
    const std::vector<float> wanted = expected.floats(name);
    BOOST_TEST_REQUIRE(made.size() == kUmt5Tokens * kUmt5Width);
    const auto padding = made.begin() + std::ptrdiff_t(wanted.size());
    BOOST_TEST(std::all_of(padding, made.end(), [](float x) { return x == 0; }),
               name << ": states of padding are zeros");
    made.resize(wanted.size());
    const double error = relative_error(made, wanted);
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  static std::string empty() {
    return R"("empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 48, "length": 9, "batch_size": 1}})";
  }
  // From the latent "out" to frames.
  static std::string decoded() {
    return R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}},
      "frames": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["frames", 0]}}})";
  }
  // hints: of the samplers.
  static std::string video(const std::string& hints = "") {
    return cat(
        "{", texts(), ", ", loaded("wan2.1_t2v_1.3B_fp16"), ", ", empty(),
        R"(, "shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["model", 0], "shift": 8.0}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["shifted", 0], "seed": 7, "steps": 3,
        "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, "}", decoded());
  }
  // The first half of the steps by one model, the others by another, as Wan 2.2 is drawn.
  static std::string experts(const std::string& hints = "") {
    const auto model = [](const char* name) {
      return cat(R"(, "load_)", name,
                 R"(": {"class_type": "UNETLoader", "inputs": {"unet_name": "wan2.2_t2v_)", name,
                 R"(_noise_14B_fp8_scaled.safetensors", "weight_dtype": "default"}}, ")", name,
                 R"(": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["load_)", name,
                 R"(", 0], "shift": 5.0}})");
    };
    const auto sampler = [&](const char* node, const char* name, const char* latent,
                             const char* steps) {
      return cat(R"(, ")", node, R"(": {"class_type": "KSamplerAdvanced", "inputs": {"model": [")",
                 name, R"(", 0], "noise_seed": 7, "steps": 4, "cfg": 3.5, "sampler_name": "euler",
        "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0], "latent_image": [")",
                 latent, R"(", 0], )", steps, hints, "}}");
    };
    return cat(
        "{", texts(), ", ", empty(), model("high"), model("low"),
        sampler(
            "first", "high", "empty",
            R"("add_noise": "enable", "start_at_step": 0, "end_at_step": 2, "return_with_leftover_noise": "enable")"),
        sampler(
            "out", "low", "first",
            R"("add_noise": "disable", "start_at_step": 2, "end_at_step": 10000, "return_with_leftover_noise": "disable")"),
        decoded());
  }
  void add_video() const {
    add_encoder(encoder());
    add_transformer("wan2.1_t2v_1.3B_fp16", "high");
    add("vae/wan_2.1_vae", seeded_model("vae", false, "wan_vae"));
  }
  void add_experts() const {
    add_encoder(encoder());
    add_transformer("wan2.2_t2v_high_noise_14B_fp8_scaled", "high");
    add_transformer("wan2.2_t2v_low_noise_14B_fp8_scaled", "low");
    add("vae/wan_2.1_vae", seeded_model("vae", false, "wan_vae"));
  }
  void compare_video(const std::string& flow, const std::string& name) {
    const heddle::Results drawn = run_whole(flow, {"out.LATENT", "frames.IMAGE"});
    BOOST_TEST(warnings.empty());
    const double error =
        relative_error(drawn.floats("out.LATENT", "samples"), expected.floats(name + ".latent"));
    const double quality =
        decibels(some_of(drawn.floats("frames.IMAGE")), expected.floats(name + ".frames"));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", frames " << quality << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    BOOST_TEST(quality >= 70, name << ": " << quality << " dB");
  }
  // Each third row and column of the frames, as the golden has them.
  static std::vector<float> some_of(const std::vector<float>& frames) {
    BOOST_TEST_REQUIRE(frames.size() == 9u * 48 * 64 * 3);
    std::vector<float> some;
    for (std::size_t row = 0; row < 9 * 48; ++row)
      for (std::size_t column = 0; row % 48 % 3 == 0 && column < 64; column += 3)
        for (std::size_t colour = 0; colour < 3; ++colour)
          some.push_back(frames[(row * 64 + column) * 3 + colour]);
    return some;
  }
  // Of frames from 0 to 1.
  static double decibels(const std::vector<float>& got, const std::vector<float>& wanted) {
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
  static std::vector<float> frames_of(heddle::Engine& engine, const std::string& flow) {
    return engine.start(engine.parse(flow), {{}, {"frames.IMAGE"}}).wait().floats("frames.IMAGE");
  }
  std::vector<float> frames_on(std::vector<std::string> devices, const std::string& flow,
                               std::uint64_t budget = 0) const {
    heddle::Engine placed(options_for(std::move(devices), budget));
    return frames_of(placed, flow);
  }
  // Bytes of the experts' weights that the device holds.
  struct Resident {
    std::uint64_t high = 0, low = 0;
  };
  static Resident experts_on(heddle::Engine& engine) {
    Resident now;
    for (const heddle::ResidentModel& model : heddle::Models(engine).resident()) {
      if (model.name.find("_high_") != std::string::npos) now.high += model.bytes;
      if (model.name.find("_low_") != std::string::npos) now.low += model.bytes;
    }
    return now;
  }
  static std::string divided(const char* mode) {
    return cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
  }
  std::string refusal(const std::string& nodes) {
    return engine_refusal([&] { states("a fox", nodes); });
  }
  static void has(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(umt5_workflows, Umt5Texts)

BOOST_AUTO_TEST_CASE(a_text_by_the_vocabulary_in_the_file_equals_transformers) {
  add_encoder(encoder());
  compare_states(states("a red fox walks through the deep snow"), "one");
  compare_states(states("blurred, ugly, слишком темно"),
                 "two");  // letters that are no pieces: bytes
}

BOOST_AUTO_TEST_CASE(weights_are_against_the_empty_text_whose_padding_is_masked_too) {
  add_encoder(encoder());
  compare_states(states("a (red fox:1.4) walks"), "weighted");
}

BOOST_AUTO_TEST_CASE(options_say_how_many_tokens_there_are) {
  add_encoder(encoder());
  const auto with = [&](const char* options) {
    return states(
        "a red fox walks through the deep snow",
        cat(clip(),
            R"(, "few": {"class_type": "T5TokenizerOptions", "inputs": {"clip": ["clip", 0], )",
            options, "}}"),
        "few");
  };
  const std::vector<float> plain = states("a red fox walks through the deep snow");
  const std::size_t tokens = expected.floats("one").size() / kUmt5Width;
  BOOST_TEST(with(R"("min_padding": 0, "min_length": 0)").size() == tokens * kUmt5Width);
  const std::vector<float> padded = with(R"("min_padding": 3, "min_length": 0)");
  BOOST_TEST_REQUIRE(padded.size() == (tokens + 3) * kUmt5Width);
  BOOST_TEST(std::equal(padded.begin(), padded.end(), plain.begin()));
}

BOOST_AUTO_TEST_CASE(from_texts_to_the_frames_of_a_video_equals_pytorch) {
  add_video();
  compare_video(video(), "video");
}

BOOST_AUTO_TEST_CASE(two_experts_after_each_other_equal_pytorch) {
  add_experts();
  compare_video(experts(), "experts");
}

BOOST_AUTO_TEST_CASE(frames_have_the_same_bytes_wherever_they_are_drawn) {
  add_video();
  const std::vector<float> alone = frames_on({"cpu:0"}, video());
  for (const char* mode : {"layers", "cfg"})
    BOOST_TEST(are_equal(alone, frames_on({"fake:0", "fake:1"}, video(divided(mode)))), mode);
  // The model's weights are 6.6 MiB, and it needs some 6 beside them.
  BOOST_TEST(are_equal(alone, frames_on({"fake:0"}, video(), 9 << 20)), "little memory");
}

BOOST_AUTO_TEST_CASE(frames_of_two_experts_have_the_same_bytes_wherever_they_are_drawn) {
  add_experts();
  const std::vector<float> alone = frames_on({"cpu:0"}, experts());
  for (const char* mode : {"layers", "cfg"})
    BOOST_TEST(are_equal(alone, frames_on({"fake:0", "fake:1"}, experts(divided(mode)))), mode);
}

// There is room for one expert and what it computes, then for less than that, never for both.
BOOST_AUTO_TEST_CASE(of_two_experts_the_second_takes_the_place_of_the_first) {
  add_experts();
  heddle::Engine roomy(options_for({"fake:0"}));
  const std::vector<float> alone = frames_of(roomy, experts());
  const std::uint64_t whole = experts_on(roomy).low;
  BOOST_TEST(experts_on(roomy).high == whole);
  for (const std::uint64_t budget : {std::uint64_t{26} << 19, std::uint64_t{9} << 20}) {
    BOOST_TEST_REQUIRE(budget < 2 * whole);
    const bool is_tight = budget < whole + (whole / 2);
    heddle::Engine placed(options_for({"fake:0"}, budget));
    std::map<std::string, std::vector<Resident>, std::less<>> seen;  // by the node that samples
    const auto observe = [&](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::node_progress)
        seen[std::string(event.node)].push_back(experts_on(placed));
    };
    const std::vector<float> made =
        placed.start(placed.parse(experts()), {observe, {"frames.IMAGE"}})
            .wait()
            .floats("frames.IMAGE");
    BOOST_TEST(are_equal(alone, made), budget << " bytes");
    for (const char* sampler : {"first", "out"}) {
      BOOST_TEST(seen[sampler].size() == 2u, sampler);
      for (const Resident& now : seen[sampler]) {
        BOOST_TEST(now.high + now.low < budget);
        const bool is_first = sampler == std::string("first");
        const std::uint64_t used = is_first ? now.high : now.low;
        // Where there is no room for all of it, it is streamed.
        BOOST_TEST((is_tight ? used > 0 && used < whole : used == whole), sampler << ": " << used);
        if (!is_first) BOOST_TEST(now.high < whole / 2, now.high);
      }
    }
    const heddle::MemoryReport memory = placed.devices().at(0).memory;
    BOOST_TEST(memory.peak <= budget);
    const auto gone = std::ranges::find(memory.evictions, "weights without use",
                                        [](const heddle::Eviction& each) { return each.what; });
    BOOST_TEST_REQUIRE((gone != memory.evictions.end()));
    BOOST_TEST(gone->bytes > (is_tight ? whole / 10 : whole / 2));
    // Both files are read once; what is streamed again and again comes out of host memory.
    BOOST_TEST(placed.host_memory().read_first > 2 * whole);
    BOOST_TEST(placed.host_memory().read_again == 0u);
  }
}

// While the first samples: with room for both on the device, and for one.
BOOST_AUTO_TEST_CASE(of_two_experts_the_file_of_the_second_is_read_while_the_first_samples) {
  add_experts();
  heddle::Engine roomy(options_for({"cpu:0"}));
  const std::vector<float> alone = frames_of(roomy, experts());
  const std::uint64_t all = roomy.host_memory().read_first, whole = experts_on(roomy).low;
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{26} << 19}) {
    heddle::Engine placed(options_for({"fake:0"}, budget));
    std::uint64_t low = whole, read = 0;
    const auto observe = [&](const heddle::Event& event) {
      if (event.kind != heddle::Event::Kind::node_progress || event.node != "first") return;
      // All but the autoencoder, which comes behind the second.
      for (int tries = 0; tries < 6000; ++tries) {
        read = placed.host_memory().read_first;
        if (read + whole / 2 > all) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      low = std::min(low, experts_on(placed).low);
    };
    const std::vector<float> made =
        placed.start(placed.parse(experts()), {observe, {"frames.IMAGE"}})
            .wait()
            .floats("frames.IMAGE");
    BOOST_TEST(are_equal(alone, made), budget << " bytes");
    BOOST_TEST(read + whole / 2 > all, read << " of " << all);
    BOOST_TEST(low == 0u);
    BOOST_TEST(placed.host_memory().read_again == 0u);
  }
}

// The second text is by the model of the first, so what is read meanwhile is what comes behind it.
BOOST_AUTO_TEST_CASE(of_two_texts_and_an_expert_the_expert_is_read_while_the_first_is_encoded) {
  add_experts();
  heddle::Engine encoding(options_for({"fake:0"}));
  encoding
      .start(encoding.parse(
          cat("{", texts(),
              R"(, "show": {"class_type": "PreviewAny", "inputs": {"source": ["one", 0]}}})")))
      .wait();
  const std::uint64_t encoder = encoding.host_memory().read_first;
  BOOST_TEST(encoder > 0u);
  heddle::Engine placed(options_for({"fake:0"}));
  std::uint64_t read = 0;
  std::vector<std::string> texts_done;
  const auto observe = [&](const heddle::Event& event) {
    if (event.kind != heddle::Event::Kind::node_done) return;
    if (event.node != "one" && event.node != "two") return;
    texts_done.emplace_back(event.node);
    for (int tries = 0; tries < 1000 && texts_done.size() == 1 && read <= encoder; ++tries) {
      read = placed.host_memory().read_first;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  placed.start(placed.parse(experts()), {observe, {"frames.IMAGE"}}).wait();
  BOOST_TEST(texts_done.size() == 2u);
  BOOST_TEST(read > encoder);
  BOOST_TEST(placed.host_memory().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(plans_know_what_runs_ask_of_the_models) {
  add_video();
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, video());
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said) {
  add_encoder(encoder(false));
  has(refusal(clip()), {kUmt5File, "umt5xxl", "needs its tokenizer", "google/umt5-xxl"});
  add_encoder(encoder());
  has(refusal(clip("stable_diffusion")), {kUmt5File, "'wan'", "'stable_diffusion'"});
  has(refusal(clip("sd3")), {kUmt5File, "umt5xxl", "'sd3'"});
}

BOOST_AUTO_TEST_SUITE_END()
