// A checkpoint on its way into a file and back; and what is refused.
#include "engine/run/checkpoint_file.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/base/write_file.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

namespace {

CheckpointContent content() {
  CheckpointContent c;
  c.workflow = R"({"1": {}})";
  c.note = "a \"note\"";
  c.given[{"1", "a"}] = make_value(std::int64_t{-5});
  c.partly = true;
  c.builds = {{"heddle", "0.1.0"}, {"the plugin a 1", "12"}};
  c.made_of = {{"1", hex(Hash128{1, 2})}};
  c.saved.states[{"1", 3}] = {{}, make_record({{"step", make_value(std::int64_t{7})}})};
  c.saved.outputs["2"] = {{}, {Value(), make_value("kept")}};
  c.saved.ended = {"9"};
  c.saved.places["1"] = {"fake, x, f32", "tensor", "fake:0,fake:1"};
  c.files = {"out/a.png"};
  c.ui = {{"9", "{}"}};
  return c;
}

std::string refusal(const std::function<void()>& action) {
  return heddle::test::refusal_of(action).what();
}
std::string refusal(const std::string& file) {
  return refusal([&] { parse_checkpoint(std::as_bytes(std::span(file)), "x.checkpoint"); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_file)

BOOST_AUTO_TEST_CASE(all_of_it_comes_back) {
  const TemporaryFolder folder;
  write_file(folder / "x.checkpoint", checkpoint_text(content()), Lasting::no);
  const CheckpointContent c = read_checkpoint(folder / "x.checkpoint"), expected = content();
  BOOST_TEST(c.workflow == expected.workflow);
  BOOST_TEST(c.note == expected.note);
  BOOST_TEST(get_int(*c.given.at({"1", "a"})) == -5);
  BOOST_TEST(c.partly);
  BOOST_TEST((c.builds == expected.builds && c.made_of == expected.made_of));
  const Value state = c.saved.states.at({"1", 3}).value;
  BOOST_TEST(get_int(**std::get<Record>(state->content).find("step")) == 7);
  BOOST_TEST(!c.saved.outputs.at("2").values.at(0));
  BOOST_TEST(get_str(*c.saved.outputs.at("2").values.at(1)) == "kept");
  BOOST_TEST(c.saved.ended.contains("9"));
  BOOST_TEST((c.saved.places == expected.saved.places));
  BOOST_TEST((c.files == expected.files && c.ui == expected.ui));
}

BOOST_AUTO_TEST_CASE(every_cut_and_every_changed_byte_is_refused_with_the_name) {
  const std::string file = checkpoint_text(content());
  for (std::size_t size = 0; size < file.size(); size += 7)
    BOOST_TEST(refusal(file.substr(0, size)).starts_with("x.checkpoint"), size << " bytes");
  for (std::size_t at = 0; at < file.size(); at += 3) {
    std::string damaged = file;
    damaged[at] = char(damaged[at] + 1);
    BOOST_TEST(refusal(damaged).starts_with("x.checkpoint"), "byte " << at);
  }
}

BOOST_AUTO_TEST_CASE(another_build_is_refused_by_the_name_of_the_plugin) {
  std::map<std::string, std::string> now = content().builds;
  now["the plugin b 1"] = "34";  // one more makes no difference
  check_builds(content(), now);
  now["the plugin a 1"] = "13";
  BOOST_TEST(refusal([&] {
               check_builds(content(), now);
             }).starts_with("the plugin a 1 is another build"));
  now.erase("the plugin a 1");
  BOOST_TEST(refusal([&] {
               check_builds(content(), now);
             }).starts_with("the plugin a 1 has a part in this run, and is not here"));
}

BOOST_AUTO_TEST_SUITE_END()
