// Names of saved files: placeholders, folders, counters, and prefixes that try to get out.
#include "plugins/blocks/file_names.h"

#include <boost/test/unit_test.hpp>

#include "tests/plugins/image/refused.h"
#include "tests/support/temporary_folder.h"

namespace heddle::blocks {
namespace {

namespace fs = std::filesystem;
using heddle::test::TemporaryFolder;
using image::testing::refused;
using image::testing::says;

PrefixFacts facts() {
  PrefixFacts facts;
  facts.now.tm_year = 126;
  facts.now.tm_mon = 2;
  facts.now.tm_mday = 4;
  facts.now.tm_hour = 5;
  facts.now.tm_min = 6;
  facts.now.tm_sec = 7;
  facts.width = 640;
  facts.height = 48;
  facts.widget = [](std::string_view node, std::string_view widget) -> std::optional<std::string> {
    if (node == "KSampler" && widget == "seed") return "18446744073709551615";
    if (node == "My prompt" && widget == "text") return "a/b: \"c\"?\n";
    return std::nullopt;
  };
  return facts;
}

std::string expanded(std::string_view prefix) { return expand_prefix(prefix, facts()); }

}  // namespace

BOOST_AUTO_TEST_SUITE(image_file_names)

BOOST_AUTO_TEST_CASE(sizes_and_times_are_filled_in) {
  BOOST_TEST(expanded("a_%width%x%height%") == "a_640x48");
  BOOST_TEST(expanded("%year%-%month%-%day%/%hour%%minute%%second%") == "2026-03-04/050607");
  BOOST_TEST(expanded("%width%%width%") == "640640");
}

BOOST_AUTO_TEST_CASE(dates_follow_their_pattern) {
  BOOST_TEST(expanded("%date:yyyy-MM-dd%") == "2026-03-04");
  BOOST_TEST(expanded("%date:yy_M_d_h_m_s%") == "26_3_4_5_6_7");
  BOOST_TEST(expanded("%date:hhmmss%_x") == "050607_x");
  BOOST_TEST(expanded("%date:yyy y MMM%") == "yyy y 033");
}

BOOST_AUTO_TEST_CASE(widgets_of_nodes_become_one_name) {
  BOOST_TEST(expanded("seed %KSampler.seed%") == "seed 18446744073709551615");
  BOOST_TEST(expanded("%My prompt.text%") == "a_b_ _c___");
}

BOOST_AUTO_TEST_CASE(what_is_not_known_stays) {
  for (const char* prefix : {"100%", "%", "%%", "%%%", "%nothing%", "%KSampler.steps%", "%a.b.c%",
                             "%batch_num%", "", "plain"})
    BOOST_TEST(expanded(prefix) == prefix);
  BOOST_TEST(expanded("%%KSampler.seed%") == "%18446744073709551615");
  BOOST_TEST(expand_prefix("%KSampler.seed%", {}) == "%KSampler.seed%");
}

BOOST_AUTO_TEST_CASE(a_prefix_gives_folder_and_stem) {
  const TemporaryFolder root;
  const auto place = [&](const char* prefix) { return find_place(root.path(), prefix); };
  BOOST_TEST(place("ComfyUI").folder == root.path() / "");
  BOOST_TEST(place("ComfyUI").subfolder == "");
  BOOST_TEST(place("ComfyUI").stem == "ComfyUI");
  BOOST_TEST(place("a/b/c").subfolder == "a/b");
  BOOST_TEST(place("a/b/c").stem == "c");
  BOOST_TEST(fs::is_directory(root / "a/b"));
  BOOST_TEST(place("./a//x/../c").subfolder == "a");
  BOOST_TEST(!fs::exists(root / "a/x"));
  BOOST_TEST(place("a/b/").stem == "b");
  BOOST_TEST(place("a/b/").subfolder == "a");
  BOOST_TEST(place("").stem == ".");
}

BOOST_AUTO_TEST_CASE(names_hold_no_control_characters) {
  const TemporaryFolder root;
  const auto place = [&](const std::string& prefix) { return find_place(root.path(), prefix); };
  BOOST_TEST(place("a\n\x1b[2J\x7f").stem == "a__[2J_");
  BOOST_TEST(place("a\r/b\t").subfolder == "a_");
  BOOST_TEST(place("\xc2\x80\xc2\x9f\u2028\u2029\u202a\u202e\u2066\u2069").stem == "________");
  for (const char* harmless : {"\u00a0\u00e9", "\u2027\u202f\u2065\u206a", "\U0001f642"})
    BOOST_TEST(place(harmless).stem == harmless);
}

BOOST_AUTO_TEST_CASE(a_prefix_that_leaves_the_folder_is_refused) {
  const TemporaryFolder root;
  fs::create_directories(root / "out/in");
  fs::create_directories(root / "secret");
  fs::create_directory_symlink(root / "secret", root / "out/link");
  fs::create_directory_symlink("in", root / "out/inner");
  const auto refusal = [&](const std::string& prefix) {
    return refused([&] { find_place(root / "out", prefix); });
  };
  for (const char* prefix : {"../x", "..", "a/../../x", "../out2/x", "a/../..", "./../x"}) {
    BOOST_TEST_CONTEXT(prefix) {
      BOOST_TEST(refusal(prefix).code == HEDDLE_INVALID_ARGUMENT);
      BOOST_TEST(says(refusal(prefix), "leaves the output folder"));
    }
  }
  BOOST_TEST(says(refusal("/etc/x"), "absolute"));
  BOOST_TEST(says(refusal("link/x"), "a link leads to"));
  BOOST_TEST(says(refusal("link/deeper/x"), "a link leads to"));
  BOOST_TEST(fs::is_empty(root / "secret"));
  BOOST_TEST(says(refusal(std::string("a\0b", 3)), "zero byte"));
  BOOST_TEST(find_place(root / "out", "inner/x").subfolder == "inner");
}

BOOST_AUTO_TEST_CASE(the_output_folder_itself_may_be_a_link) {
  const TemporaryFolder root;
  fs::create_directories(root / "disk");
  fs::create_directory_symlink(root / "disk", root / "out");
  BOOST_TEST(find_place(root / "out", "a/x").subfolder == "a");
  BOOST_TEST(fs::is_directory(root / "disk/a"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_an_io_error) {
  const TemporaryFolder root;
  root.write("file", "x");
  const Error error = refused([&] { find_place(root.path(), "file/x"); });
  BOOST_TEST(error.code == HEDDLE_IO);
  BOOST_TEST(says(error, "cannot be made"));
}

BOOST_AUTO_TEST_CASE(the_counter_follows_the_greatest_number) {
  const TemporaryFolder root;
  const Place place = find_place(root.path(), "a");
  BOOST_TEST(next_counter(place) == 1u);
  for (const char* name : {"b_00050_.png", "a_x_.png", "aa_00060_.png", "a_.png", "A_00070_.png",
                           "a_99999999999999999999_.png"})
    root.write(name, "");
  BOOST_TEST(next_counter(place) == 1u);
  root.write("a_00007.png", "");  // of a node that ends names with the number
  BOOST_TEST(next_counter(place) == 8u);
  root.write("a_00002_.png", "");
  root.write("a_00009_.webp", "");
  BOOST_TEST(next_counter(place) == 10u);
  root.write("a_100000_more_.png", "");
  BOOST_TEST(next_counter(place) == 100001u);
}

BOOST_AUTO_TEST_CASE(names_have_five_digits_and_an_underscore) {
  BOOST_TEST(file_name("ComfyUI", 0, 1) == "ComfyUI_00001_.png");
  BOOST_TEST(file_name("ComfyUI", 0, 123456) == "ComfyUI_123456_.png");
  BOOST_TEST(file_name("a%batch_num%b", 3, 42) == "a3b_00042_.png");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::blocks
