// Nodes of tracks, and what Wan 2.1 draws that is told of them, against PyTorch and Pillow
// (../goldens/make_wan_track_goldens.py).
#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;
using heddle::engine::Json;

namespace {

struct WanTracks : PlacedFixture {
  const std::filesystem::path files = tests_folder() / "plugins/goldens/wan_tracks",
                              golden = files / "expected.safetensors";
  TensorFile expected{golden};
  const Json texts = heddle::engine::parse_json(read_text(files / "tracks.json"), "tracks.json");

  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string given(const char* as, const char* type, const char* name) const {
    return node_of(as, cat("test.", type),
                   cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\""));
  }
  static std::string looked_at(const std::string& link) {
    return cat(R"("look": {"class_type": "test.look", "inputs": {"value": )", link, "}}");
  }
  // JSON as a literal of a workflow; single: with single quotes, as Python writes it.
  static std::string literal(const Json& json, bool single = false) {
    std::string text = heddle::engine::write_json(json);
    if (single) std::ranges::replace(text, '"', '\'');
    return heddle::engine::write_json(Json(text));
  }
  // By the curves of the golden file: places of a start, a middle and an end.
  static std::string generated(const std::string& name, const char* places, int frames, int tracks,
                               const char* spread, const char* pace, const char* more = "") {
    return node_of(name, "GenerateTracks",
                   cat(R"("width": 64, "height": 48, "num_frames": )", frames,
                       R"(, "num_tracks": )", tracks, R"(, "track_spread": )", spread, ", ", places,
                       R"(, "interpolation": ")", pace, "\"", more));
  }
  static constexpr const char* kStraight = R"("start_x": 0.0, "start_y": 0.0, "mid_x": 0.5,
      "mid_y": 0.5, "end_x": 1.0, "end_y": 1.0, "bezier": false)";
  static std::string curve(const char* more = R"(, "track_mask": ["shown", 0])") {
    return generated("curve", R"("start_x": 0.1, "start_y": 0.9, "mid_x": 0.3, "mid_y": 0.05,
                                 "end_x": 0.95, "end_y": 0.6, "bezier": true)",
                     9, 4, "0.05", "ease_in_out", more);
  }
  static std::string flow_of(std::string nodes) { return cat("{", nodes.substr(2), "}"); }

  void compare(const std::vector<float>& made, const std::string& name, double most = 1e-5) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < most, name << ": relative error " << error);
  }
  std::vector<float> field_of(const std::string& nodes, const char* output, const char* field) {
    return run_whole(flow_of(cat(nodes, ", ", looked_at(R"(["node", 0])"))), {output})
        .floats(output, field);
  }
  void refused(const std::string& nodes, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow_of(nodes), {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }

  // What the nodes for Wan have in common; pictures: how many begin the video.
  std::string video_nodes() {
    if (!std::filesystem::exists(folder / "models/diffusion_models/wan_tracks.safetensors")) {
      add("diffusion_models/wan_tracks", seeded_model("flow", true, "wan_tracks"));
      add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
    }
    return cat(", ", loaded("wan_tracks"), R"(, "one": )", text("one", golden), R"(, "two": )",
               text("two", golden), given("pictures", "image", "pictures"),
               given("shown", "mask", "shown"),
               node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"));
  }
  static std::string video_node(const char* type, int length, int batch, const std::string& more) {
    return node_of("node", type,
                   cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
                        "width": 64, "height": 48, "start_image": ["pictures", 0], "length": )",
                       length, R"(, "batch_size": )", batch, more));
  }
  std::string ati(const char* name, int length, int batch, const char* temperature, int nearest,
                  bool single = false) {
    return video_node("WanTrackToVideo", length, batch,
                      cat(R"(, "temperature": )", temperature, R"(, "topk": )", nearest,
                          R"(, "tracks": )", literal(*texts.find("ati")->find(name), single)));
  }
  std::string moved(const char* strength, const char* mask = "", int batch = 1) {
    return cat(
        node_of("words", "PrimitiveString", cat(R"("value": )", literal(*texts.find("move")))),
        node_of("tracks", "WanMoveTracksFromCoords", cat(R"("track_coords": ["words", 0])", mask)),
        video_node("WanMoveTrackToVideo", 9, batch,
                   cat(R"(, "tracks": ["tracks", 0], "strength": )", strength)));
  }
  std::vector<float> told(const std::string& nodes, int output, const char* path) {
    return run_whole(flow_of(cat(nodes, R"(, "entry": {"class_type": "test.first", "inputs":
                                 {"list": ["node", )",
                                 output, "]}}, ", looked_at(R"(["entry", 0])"))),
                     {"entry.value"})
        .floats("entry.value", path);
  }
  std::string drawn(const std::string& node, const std::string& hints = "") {
    return flow_of(
        cat(video_nodes(), node,
            R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
                "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive":
                ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2], "denoise": 1.0})",
            hints, "}, ", looked_at(R"(["out", 0])")));
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    const std::size_t from = flow.find(R"("pictures": {)"), to = flow.find("}}", from) + 2;
    return flow.replace(from, to - from, R"("pictures": {"class_type": "EmptyImage", "inputs":
        {"width": 12, "height": 9, "batch_size": 2, "color": 255000}})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_tracks, WanTracks)

BOOST_AUTO_TEST_CASE(tracks_along_lines_and_curves_equal_pytorch) {
  const auto check = [&](const std::string& node, const std::string& name) {
    compare(run_whole(flow_of(cat(node, ", ", looked_at(cat("[\"", name, "\", 0]")))),
                      {name + ".TRACKS"})
                .floats(name + ".TRACKS", "track_path"),
            name + ".path", 1e-6);
  };
  check(generated("line", kStraight, 9, 3, "0.1", "linear"), "line");
  check(curve(""), "curve");
  constexpr const char* kBack = R"("start_x": 0.5, "start_y": 0.25, "end_x": 0.25, "end_y": 0.75,
                                   "mid_x": 0.9, "mid_y": 0.9, "bezier": )";
  check(generated("slow", cat(kBack, "false").c_str(), 7, 2, "0.2", "ease_in"), "slow");
  check(generated("fast", cat(kBack, "true").c_str(), 12, 1, "0.2", "ease_out"), "fast");
  check(generated("still", R"("start_x": 0.5, "start_y": 0.5, "mid_x": 0.5, "mid_y": 0.5, "end_x":
                              0.5, "end_y": 0.5, "bezier": false)",
                  3, 3, "0.125", "constant"),
        "still");
}

BOOST_AUTO_TEST_CASE(masks_without_anything_hide_tracks) {
  const heddle::Results made = run_whole(
      flow_of(cat(given("shown", "mask", "shown"), curve(), ", ", looked_at(R"(["curve", 0])"))),
      {"curve.TRACKS"});
  const std::vector<float> seen = made.floats("curve.TRACKS", "track_visibility");
  BOOST_TEST_REQUIRE(seen.size() == 9u * 4);
  for (std::size_t t = 0; t < 9; ++t)
    for (std::size_t n = 0; n < 4; ++n)
      BOOST_TEST(seen[4 * t + n] == (t == 3 || t == 6 || t == 8 ? 0.0f : 1.0f), "frame " << t);
  // One is that of all frames.
  const std::vector<float> hidden =
      run_whole(
          flow_of(cat(node_of("shown", "SolidMask", R"("value": 0.0, "width": 8, "height": 8)"),
                      curve(), ", ", looked_at(R"(["curve", 0])"))),
          {"curve.TRACKS"})
          .floats("curve.TRACKS", "track_visibility");
  BOOST_TEST(hidden == std::vector<float>(9 * 4, 0.0f));
}

BOOST_AUTO_TEST_CASE(tracks_of_two_sources_stand_side_by_side) {
  const std::string nodes = cat(
      given("shown", "mask", "shown"), curve(), generated("line", kStraight, 9, 3, "0.1", "linear"),
      node_of("both", "WanMoveConcatTrack", R"("tracks_1": ["curve", 0], "tracks_2": ["line", 0])"),
      node_of("one", "WanMoveConcatTrack", R"("tracks_1": ["both", 0])"));
  const heddle::Results made =
      run_whole(flow_of(cat(nodes, ", ", looked_at(R"(["one", 0])"))), {"one.TRACKS"});
  BOOST_TEST((made.shape("one.TRACKS", "track_path") == std::vector<std::int64_t>{9, 7, 2}));
  const std::vector<float> path = made.floats("one.TRACKS", "track_path"),
                           first = expected.floats("curve.path"),
                           second = expected.floats("line.path"),
                           seen = made.floats("one.TRACKS", "track_visibility");
  for (std::size_t t = 0; t < 9; ++t) {
    for (std::size_t i = 0; i < 8; ++i)
      BOOST_TEST(std::abs(path[14 * t + i] - first[8 * t + i]) < 1e-4);
    for (std::size_t i = 0; i < 6; ++i)
      BOOST_TEST(std::abs(path[14 * t + 8 + i] - second[6 * t + i]) < 1e-4);
  }
  BOOST_TEST((seen[7 * 3] == 0 && seen[7 * 3 + 4] == 1));
  heddle::Engine::Data data(options_for({"cpu:0"}));
  check_inference(data, flow_of(cat(curve(""), generated("line", kStraight, 9, 3, "0.1", "linear"),
                                    node_of("both", "WanMoveConcatTrack",
                                            R"("tracks_1": ["curve", 0], "tracks_2": ["line", 0])"),
                                    ", ", looked_at(R"(["both", 0])"))));
}

BOOST_AUTO_TEST_CASE(tracks_are_drawn_as_pillow_draws_them) {
  struct Style {
    const char *name, *inputs;
  };
  constexpr std::size_t kFrames[] = {2, 5, 7}, kPicture = 48 * 64 * 3;
  for (const Style& style :
       {Style{"thin",
              R"("line_resolution": 24, "circle_size": 1, "opacity": 1.0, "line_width": 1)"},
        Style{"plain",
              R"("line_resolution": 3, "circle_size": 5, "opacity": 0.75, "line_width": 6)"},
        Style{"wide",
              R"("line_resolution": 8, "circle_size": 12, "opacity": 0.4, "line_width": 15)"},
        Style{"huge",
              R"("line_resolution": 2, "circle_size": 40, "opacity": 0.33, "line_width": 64)"}}) {
    const std::string nodes =
        cat(given("shown", "mask", "shown"), given("canvas", "image", "canvas"), curve(),
            node_of("node", "WanMoveVisualizeTracks",
                    cat(R"("images": ["canvas", 0], "tracks": ["curve", 0], )", style.inputs)));
    const std::vector<float> made = field_of(nodes, "node.IMAGE", "");
    BOOST_TEST_REQUIRE(made.size() == 9 * kPicture);
    const std::string& wanted = expected.at(cat("drawn.", style.name)).bytes;
    std::size_t others = 0;
    for (std::size_t i = 0; i < std::size(kFrames); ++i)
      for (std::size_t k = 0; k < kPicture; ++k)
        others += std::lround(255 * made[kFrames[i] * kPicture + k]) !=
                  std::uint8_t(wanted[i * kPicture + k]);
    BOOST_TEST(others == 0u, style.name << ": " << others << " numbers are others");
  }
}

// A point that stands still has no way behind it.
BOOST_AUTO_TEST_CASE(discs_have_pillows_rows) {
  const std::string& rows = expected.at("discs").bytes;
  for (const int radius : {1, 2, 3, 4, 6, 7, 9, 10, 11, 13, 17, 25, 50, 64, 99, 127, 128}) {
    const std::string nodes =
        cat(node_of("canvas", "EmptyImage",
                    R"("width": 272, "height": 272, "batch_size": 1, "color": 0)"),
            node_of("still", "GenerateTracks", R"("width": 272, "height": 272, "num_frames": 1,
            "num_tracks": 1, "track_spread": 0.0, "start_x": 0.5, "start_y": 0.5, "mid_x": 0.5,
            "mid_y": 0.5, "end_x": 0.5, "end_y": 0.5, "bezier": false, "interpolation": "linear")"),
            node_of("node", "WanMoveVisualizeTracks",
                    cat(R"("images": ["canvas", 0], "tracks": ["still", 0], "line_resolution": 24,
                        "opacity": 1.0, "line_width": 1, "circle_size": )",
                        radius)));
    const std::vector<float> made = field_of(nodes, "node.IMAGE", "");
    for (int y = 0; y <= 128; ++y) {
      int half = 0;
      for (int x = 136; x < 272; ++x) half += made[std::size_t(((136 + y) * 272 + x) * 3 + 2)] > 0;
      BOOST_TEST(half == std::uint8_t(rows[std::size_t((radius - 1) * 129 + y)]),
                 "radius " << radius << ", row " << y);
    }
  }
}

BOOST_AUTO_TEST_CASE(ati_mixes_features_along_tracks_as_pytorch_does) {
  struct Case {
    const char* name;
    int length, batch;
    const char* temperature;
    int nearest;
  };
  for (const Case& one : {Case{"whole", 9, 1, "60.5", 2}, Case{"two", 17, 2, "40.0", 10},
                          Case{"alone", 13, 1, "220.0", 1}}) {
    const std::string nodes =
        cat(video_nodes(), ati(one.name, one.length, one.batch, one.temperature, one.nearest));
    for (const int output : {0, 1}) {
      compare(told(nodes, output, "concat_latent_image"), cat("ati.", one.name, ".image"), 3e-5);
      compare(told(nodes, output, "concat_mask"), cat("ati.", one.name, ".mask"));
    }
  }
  BOOST_TEST(told(cat(video_nodes(), ati("whole", 9, 1, "60.5", 2)), 0, "concat_mask") ==
             told(cat(video_nodes(), ati("whole", 9, 1, "60.5", 2, true)), 0, "concat_mask"));
}

// 121 frames take all places, which ComfyUI cannot draw.
BOOST_AUTO_TEST_CASE(ati_takes_videos_of_any_length) {
  for (const int length : {1, 121}) {
    const std::vector<float> mask =
        told(cat(video_nodes(), ati("whole", length, 1, "60.5", 2)), 0, "concat_mask");
    BOOST_TEST_REQUIRE(mask.size() == std::size_t(4 * ((length - 1) / 4 + 1) * 6 * 8));
    BOOST_TEST(std::all_of(mask.begin(), mask.begin() + 6 * 8, [](float x) { return x == 0; }));
    if (length > 1)
      BOOST_TEST(std::any_of(mask.begin() + 6 * 8, mask.begin() + 31 * 6 * 8,
                             [](float x) { return x < 0.5; }));
  }
}

BOOST_AUTO_TEST_CASE(without_tracks_a_video_is_one_of_its_picture) {
  const std::string plain = cat(video_nodes(), video_node("WanImageToVideo", 9, 2, ""));
  for (const char* tracks : {"[]", "[{,"}) {
    const std::string nodes =
        cat(video_nodes(),
            video_node("WanTrackToVideo", 9, 2,
                       cat(R"(, "temperature": 220.0, "topk": 2, "tracks": ")", tracks, "\"")));
    for (const char* field : {"concat_latent_image", "concat_mask"})
      BOOST_TEST(told(nodes, 0, field) == told(plain, 0, field), field);
  }
  const std::string nodes =
      cat(video_nodes(), video_node("WanMoveTrackToVideo", 9, 2, R"(, "strength": 1.0)"));
  for (const char* field : {"concat_latent_image", "concat_mask"})
    BOOST_TEST(told(nodes, 1, field) == told(plain, 1, field), field);
}

BOOST_AUTO_TEST_CASE(wan_move_takes_cells_along_as_pytorch_does) {
  constexpr const char* kShown = R"(, "track_mask": ["shown", 0])";
  struct Case {
    const char *name, *strength, *mask;
  };
  for (const Case& one :
       {Case{"plain", "1.0", ""}, Case{"strong", "1.5", ""}, Case{"hidden", "0.4", kShown}})
    for (const int output : {0, 1})
      compare(
          told(cat(video_nodes(), moved(one.strength, one.mask)), output, "concat_latent_image"),
          cat("move.", one.name, ".image"));
  compare(run_whole(flow_of(cat(video_nodes(), moved("1.0"), ", ", looked_at(R"(["tracks", 0])"))),
                    {"tracks.TRACKS"})
              .floats("tracks.TRACKS", "track_path"),
          "move.path", 1e-7);
}

BOOST_AUTO_TEST_CASE(videos_along_tracks_equal_pytorch) {
  const auto latent = [&](const std::string& node) {
    return run_whole(drawn(node), {"out.LATENT"}).floats("out.LATENT", "samples");
  };
  compare(latent(ati("two", 17, 2, "40.0", 10)), "ati.latent", kTolerance);
  compare(latent(moved("1.5")), "move.latent", kTolerance);
}

BOOST_AUTO_TEST_CASE(dividing_videos_along_tracks_keeps_their_bytes,
                     *boost::unit_test::label("long")) {
  for (const std::string& node : {ati("two", 17, 2, "40.0", 10), moved("1.5")}) {
    const std::string flow = known(drawn(node));
    const std::vector<float> of_one = draw(options_for({"cpu:0"}), flow);
    for (const char* mode : {"layers", "cfg"})
      BOOST_TEST(
          are_equal(of_one, draw(options_for({"fake:0", "fake:1"}),
                                 known(drawn(node, cat(R"(, "parallel": ")", mode,
                                                       R"(", "device": "fake:0,fake:1")"))))),
          mode);
    BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
               "little memory");
  }
}

BOOST_AUTO_TEST_CASE(videos_along_tracks_are_told_before_a_run) {
  for (const std::string& node :
       {ati("two", 17, 2, "40.0", 10), ati("whole", 9, 2, "40.0", 10), moved("1.5", "", 2)}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(drawn(node)));
  }
}

BOOST_AUTO_TEST_CASE(what_are_no_tracks_is_refused) {
  const auto of_text = [&](const char* json) {
    return cat(node_of("words", "PrimitiveString", cat(R"("value": )", json)),
               node_of("node", "WanMoveTracksFromCoords", R"("track_coords": ["words", 0])"), ", ",
               looked_at(R"(["node", 0])"));
  };
  refused(of_text(R"("[]")"), {"track_coords: there are no tracks", "Write"});
  refused(of_text(R"("[{'x': 1, 'y': 2")"),
          {"track_coords: there are no tracks", "track_coords:1:"});
  refused(of_text(R"("{'x': 1, 'y': 2}")"), {"a list of tracks is wanted"});
  refused(of_text(R"("[[{'x': 1, 'y': 2}, {'x': 1}]]")"), {"no number 'y'"});
  refused(of_text(R"("[[{'x': 1, 'y': 2}], [3]]")"), {"no number 'x'"});
  refused(of_text(R"("[[{'x': 1, 'y': 2}], []]")"), {"a track has no points"});
  refused(of_text(R"("[[{'x': 1, 'y': 2}, {'x': 3, 'y': 4}], [{'x': 1, 'y': 2}]]")"),
          {"track 1 has 1 points", "the first one has 2"});
  refused(of_text(R"("[[[{'x': 1, 'y': 2}]], [[{'x': 1, 'y': 2}]]]")"), {"there are 2 sets"});
  refused(cat(node_of("node", "WanMoveTracksFromCoords", ""), ", ", looked_at(R"(["node", 0])")),
          {"track_coords: there are no tracks"});
  refused(
      cat(given("shown", "mask", "shown"),
          generated("node", kStraight, 10, 3, "0.1", "linear", R"(, "track_mask": ["shown", 0])"),
          ", ", looked_at(R"(["node", 0])")),
      {"there are 9 masks and 10 frames"});
  refused(cat(given("shown", "mask", "shown"), curve(),
              generated("line", kStraight, 8, 3, "0.1", "linear"),
              node_of("node", "WanMoveConcatTrack",
                      R"("tracks_1": ["curve", 0], "tracks_2": ["line", 0])"),
              ", ", looked_at(R"(["node", 0])")),
          {"tracks_1 has 9 frames, tracks_2 8"});
  refused(
      cat(node_of("canvas", "EmptyImage",
                  R"("width": 64, "height": 48, "batch_size": 10, "color": 0)"),
          curve(""), node_of("node", "WanMoveVisualizeTracks", R"("images": ["canvas", 0], "tracks":
                  ["curve", 0], "line_resolution": 24, "circle_size": 12, "opacity": 0.75,
                  "line_width": 16)"),
          ", ", looked_at(R"(["node", 0])")),
      {"images: there are 10", "9 frames"});
  refused(cat(video_nodes(), video_node("WanTrackToVideo", 9, 1, R"(, "temperature": 220.0,
                  "topk": 2, "tracks": "[[1, 2], [3, 4]]")"),
              ", ", looked_at(R"(["node", 0])")),
          {"tracks: a track has no points"});
}

BOOST_AUTO_TEST_SUITE_END()
