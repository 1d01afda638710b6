// Hypernetworks of all functions, of torch.save's files and safetensors, against PyTorch
// (../goldens/make_hypernetwork_goldens.py).
#include "tests/plugins/nodes/unet_patch_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Hypernetworks : PatchedUnet {
  const TensorFile made{tests_folder() / "plugins/goldens/unet/hypernetworks.safetensors"};

  Hypernetworks() {
    namespace fs = std::filesystem;
    fs::create_directories(folder / "models/hypernetworks");
    fs::create_symlink(tests_folder() / "plugins/goldens/unet/hypernetwork.pt",
                       folder / "models/hypernetworks/norms.pt");
  }
  // Two layers for keys and for values of each width.
  std::vector<FileTensor> layers() const {
    std::vector<FileTensor> tensors;
    for (const int width : {32, 64})
      for (const int which : {0, 1})
        for (const int number : {0, 1}) {
          const std::int64_t reads = number == 0 ? width : 16, makes = number == 0 ? 16 : width;
          const std::string module = cat(width, ".", which, ".linear.", number);
          tensors.push_back(seeded_tensor(module + ".weight", {makes, reads}));
          tensors.push_back(seeded_tensor(module + ".bias", {makes}));
        }
    return tensors;
  }
  void write_hypernetwork(const std::string& name, const std::vector<FileTensor>& tensors,
                          const std::string& function) const {
    write_safetensors(folder / cat("models/hypernetworks/", name, ".safetensors"), tensors,
                      {{"activation_func", function}});
  }
  static std::string loading(const std::string& name, double strength = 0.8) {
    return patch("HypernetworkLoader",
                 cat(R"("hypernetwork_name": ")", name, R"(", "strength": )", strength));
  }
  void equals(const std::vector<float>& latent, const std::string& name) {
    const double error = relative_error(latent, made.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    const double change = relative_error(latent, wanted.floats("sd1.plain"));
    BOOST_TEST(change > 100 * kTolerance, name << ": changed by " << change);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hypernetworks, Hypernetworks)

BOOST_AUTO_TEST_CASE(all_functions_equal_pytorch) {
  for (const char* function :
       {"linear", "relu", "leakyrelu", "elu", "swish", "tanh", "sigmoid", "softsign", "mish"}) {
    write_hypernetwork(function, layers(), function);
    equals(draw("sd1", loading(cat(function, ".safetensors"))), cat("sd1.", function));
  }
}

BOOST_AUTO_TEST_CASE(one_that_torch_has_saved_equals_pytorch) {
  equals(draw("sd1", loading("norms.pt")), "sd1.norms");
}

// Two come one after the other, FreeU between them changes something else, and a strength of 0
// nothing.
BOOST_AUTO_TEST_CASE(several_work_together, *boost::unit_test::label("long")) {
  const std::string name = R"("hypernetwork_name": "norms.pt")";
  const auto both = [&](const char* first, const char* second) {
    return draw(
        "sd1",
        patch("HypernetworkLoader", cat(name, R"(, "strength": )", first), "loaded", "one_net") +
            patch("FreeU", "", "one_net", "free") +
            patch("HypernetworkLoader", cat(name, R"(, "strength": )", second), "free"));
  };
  const std::vector<float> free = draw("sd1", patch("FreeU", ""));
  BOOST_TEST(relative_error(both("0.0", "0.0"), free) < 1e-5);
  const std::vector<float> first = both("0.5", "0.0");
  BOOST_TEST(relative_error(first, both("0.0", "0.5")) < 1e-5);
  BOOST_TEST(relative_error(first, free) > 1e-3);
  BOOST_TEST(relative_error(both("0.5", "0.5"), first) > 1e-3);
}

BOOST_AUTO_TEST_CASE(files_that_are_none_are_refused) {
  const auto refusal = [&](const std::string& name) {
    return engine_refusal([&] { draw("sd1", loading(name + ".safetensors")); });
  };
  const auto has = [](const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  write_hypernetwork("odd", layers(), "sine");
  has(refusal("odd"), "the hypernetwork's function 'sine' is not known");
  std::vector<FileTensor> wide = layers();
  for (FileTensor& tensor : wide)
    if (tensor.name.ends_with(".1.linear.1.weight")) tensor = seeded_tensor(tensor.name, {7, 16});
  write_hypernetwork("wide", wide, "relu");
  has(refusal("wide"), "64.1.linear.1");
  write_hypernetwork("none", {seeded_tensor("something.weight", {4, 4})}, "relu");
  has(refusal("none"), "this is no hypernetwork");
}

BOOST_AUTO_TEST_SUITE_END()
