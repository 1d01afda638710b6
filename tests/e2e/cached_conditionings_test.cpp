// What text encoders made is kept between processes: a later one does not even open their files.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "tests/e2e/flux_folder.h"
#include "tests/e2e/single_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;
namespace fs = std::filesystem;

namespace {

// Whether this process has the file mapped, as everybody has who reads weights.
bool is_open(const fs::path& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(fs::canonical(file).string())) return true;
  return false;
}

struct Fixture {
  TemporaryFolder folder;
  const fs::path clip = folder / "text_encoders/tiny_clip_l.safetensors",
                 t5 = folder / "text_encoders/tiny_t5xxl.safetensors";

  Fixture() {
    const FluxParts parts = original_parts(shipped_model());
    for (const char* name : {"text_encoders", "diffusion_models", "tokenizers"})
      fs::create_directories(folder / name);
    write_safetensors(clip, parts.clip);
    write_safetensors(t5, parts.t5);
    write_safetensors(folder / "diffusion_models/tiny.safetensors", parts.transformer);
    fs::create_directory_symlink(shipped_model() / "tokenizer", folder / "tokenizers/clip_l");
    fs::create_directory_symlink(shipped_model() / "tokenizer_2", folder / "tokenizers/t5xxl");
  }

  static std::string flow(const std::string& prompt) {
    return R"({
    "unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "tiny.safetensors", "weight_dtype": "default"}},
    "clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "tiny_clip_l.safetensors",
             "clip_name2": "tiny_t5xxl.safetensors", "type": "flux"}},
    "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["clip", 0], "text": ")" +
           prompt + R"("}},
    "more": {"class_type": "CLIPTextEncodeFlux", "inputs": {"clip": ["clip", 0], "clip_l": "sea",
             "t5xxl": "sea", "guidance": 3.0}},
    "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 128, "height": 128, "batch_size": 1}},
    "draw": {"class_type": "KSampler", "inputs": {"model": ["unet", 0], "positive": ["text", 0],
             "negative": ["more", 0], "latent_image": ["empty", 0], "seed": 1, "steps": 2, "cfg": 3.0,
             "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}},
    "end": {"class_type": "test.look", "inputs": {"value": ["draw", 0]}}})";
  }

  struct Observed {
    std::set<std::string> computed;
    bool opened = false;
    std::vector<float> latents;
  };
  // `meanwhile`: called when that node is about to run.
  Observed run(const std::string& prompt, const std::string& node = "",
               const std::function<void()>& meanwhile = {}) const {
    heddle::EngineOptions options = engine_options();
    options.model_dirs = {folder.path()};
    options.cache_dir = folder / "kept";
    heddle::Engine engine(options);
    Observed observed;
    const heddle::Observer observer = [&](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::node_done) observed.computed.emplace(event.node);
      observed.opened = observed.opened || is_open(clip) || is_open(t5);
      if (event.kind == heddle::Event::Kind::node_started && event.node == node) meanwhile();
    };
    observed.latents = engine.start(engine.parse(flow(prompt)), {observer, {"draw.LATENT"}})
                           .wait()
                           .floats("draw.LATENT", "samples");
    return observed;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cached_conditionings, Fixture)

BOOST_AUTO_TEST_CASE(the_second_run_with_a_prompt_opens_no_encoder_and_gives_the_same_bytes) {
  const Observed first = run("a whale"), second = run("a whale");
  BOOST_TEST(first.opened);
  BOOST_TEST(first.computed.contains("text"));
  BOOST_TEST(!second.opened);
  BOOST_TEST(!second.computed.contains("text"));
  BOOST_TEST(!second.computed.contains("more"));
  BOOST_TEST(!second.computed.contains("clip"));
  BOOST_TEST(second.computed.contains("draw"));
  BOOST_TEST(second.latents == first.latents);
  const Observed other = run("a house");
  BOOST_TEST(other.opened);
  BOOST_TEST(other.computed.contains("text"));
  BOOST_TEST(!other.computed.contains("more"));
  BOOST_TEST(other.latents != first.latents);
}

BOOST_AUTO_TEST_CASE(an_encoder_that_is_overwritten_meanwhile_leaves_nothing_behind) {
  const Observed sound = run("a whale");
  fs::remove_all(folder / "kept");
  std::ifstream in(t5, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const auto write_in_place = [&](const std::string& bytes) {
    std::ofstream(t5, std::ios::binary | std::ios::in) << bytes;
  };
  std::string other = content;
  for (std::size_t i = content.size() / 2; i < content.size(); i += 4)
    other[i] = char(other[i] ^ 1);
  const Observed wrong = run("a whale", "text", [&] { write_in_place(other); });
  BOOST_TEST(wrong.latents != sound.latents);
  write_in_place(content);
  const Observed again = run("a whale");
  BOOST_TEST(again.computed.contains("text"));
  BOOST_TEST(again.latents == sound.latents);
}

BOOST_AUTO_TEST_CASE(an_encoder_that_is_cut_short_fails_the_run_and_no_other) {
  const Observed sound = run("a whale");
  fs::remove_all(folder / "kept");
  std::ifstream in(t5, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const std::string refusal =
      engine_refusal([&] { run("a whale", "text", [&] { fs::resize_file(t5, 8192); }); });
  BOOST_TEST(refusal.find(t5.string() + ": the bytes") != std::string::npos, refusal);
  BOOST_TEST(refusal.find("are gone: the file has 8192 bytes") != std::string::npos, refusal);
  std::ofstream(t5, std::ios::binary | std::ios::trunc) << content;
  BOOST_TEST(run("a whale").latents == sound.latents);
}

BOOST_AUTO_TEST_SUITE_END()
