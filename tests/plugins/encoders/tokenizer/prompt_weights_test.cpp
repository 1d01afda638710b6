// Expectations follow from the rules of the prompt syntax, by hand.
#include "plugins/encoders/tokenizer/prompt_weights.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <ostream>

#include "collected.h"

namespace heddle::text {

std::ostream& operator<<(std::ostream& out, const Segment& piece) {
  return out << '[' << piece.text << "]*" << piece.weight;
}

BOOST_AUTO_TEST_SUITE(prompt_weights)

namespace {

using Segments = std::vector<Segment>;

void check(std::string_view prompt, const Segments& expected) {
  BOOST_TEST_CONTEXT(prompt) {
    const Segments segments = segments_of(prompt);
    BOOST_CHECK_EQUAL_COLLECTIONS(segments.begin(), segments.end(), expected.begin(),
                                  expected.end());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(prompt_without_parentheses_is_one_segment_of_weight_one) {
  check("a red house, at sea", {{"a red house, at sea", 1.0}});
  check("", {});
}

BOOST_AUTO_TEST_CASE(plain_parentheses_multiply_by_one_point_one) {
  check("a (red) house", {{"a ", 1.0}, {"red", 1.1}, {" house", 1.0}});
  check("((sea))", {{"sea", 1.1 * 1.1}});
  check("(a (b) c)", {{"a ", 1.1}, {"b", 1.1 * 1.1}, {" c", 1.1}});
}

BOOST_AUTO_TEST_CASE(explicit_number_replaces_the_inherited_weight) {
  check("(red:1.3)", {{"red", 1.3}});
  check("((red:1.3))", {{"red", 1.3}});
  check("(a (b:0.5) c:2)", {{"a ", 2.0}, {"b", 0.5}, {" c", 2.0}});
  check("((a) b:2)", {{"a", 2.0 * 1.1}, {" b", 2.0}});
  check("(red: 1.3 )(blue:.5)(x:1e-1)(y:-1)(z:+2)(u:1_0)",
        {{"red", 1.3}, {"blue", 0.5}, {"x", 0.1}, {"y", -1.0}, {"z", 2.0}, {"u", 10.0}});
}

BOOST_AUTO_TEST_CASE(last_colon_counts_and_only_with_a_number_after_it) {
  check("(a:b)", {{"a:b", 1.1}});
  check("(a:b:1.5)", {{"a:b", 1.5}});
  check("(4:3)", {{"4", 3.0}});
  check("(a:)", {{"a:", 1.1}});
  check("(a:1.2x)(b:1__0)(c:_1)(d:1_)(e:+-1)",
        {{"a:1.2x", 1.1}, {"b:1__0", 1.1}, {"c:_1", 1.1}, {"d:1_", 1.1}, {"e:+-1", 1.1}});
}

BOOST_AUTO_TEST_CASE(colon_at_the_start_of_a_group_is_text) { check("(:1.2)", {{":1.2", 1.1}}); }

BOOST_AUTO_TEST_CASE(numbers_that_do_not_fit_become_infinite_or_zero) {
  BOOST_TEST(std::isinf(segments_of("(a:1e999)").at(0).weight));
  BOOST_TEST(segments_of("(a:1e-999)").at(0).weight == 0.0);
  BOOST_TEST(std::isnan(segments_of("(a:nan)").at(0).weight));
}

BOOST_AUTO_TEST_CASE(escaped_parentheses_are_text) {
  check("a \\(b\\) c", {{"a (b) c", 1.0}});
  check("(a \\(b\\):1.2)", {{"a (b)", 1.2}});
  check("\\\\(a)", {{"\\(a)", 1.0}});
  check("back\\slash", {{"back\\slash", 1.0}});
}

BOOST_AUTO_TEST_CASE(parentheses_without_a_partner_are_text) {
  check("(a", {{"(a", 1.0}});
  check("a)", {{"a)", 1.0}});
  check("a) (b)", {{"a) (b)", 1.0}});
  check("a) ((b))", {{"a) (", 1.0}, {"b", 1.1}, {")", 1.0}});
  check("(a (b)", {{"a ", 1.1}, {"(b", 1.1}});
  check("()", {});
}

BOOST_AUTO_TEST_CASE(square_brackets_have_no_meaning) { check("[a] {b}", {{"[a] {b}", 1.0}}); }

BOOST_AUTO_TEST_CASE(embeddings_are_left_out_and_cut_segments) {
  check("a embedding:x b\nembedding:y", {{"a", 1.0}, {"b", 1.0}});
  check("embedding:x", {});
  check("embedding:", {});
  check("embedding: x  b\tc ", {{"b c", 1.0}});
  check("a embedding:x, b", {{"a", 1.0}, {", b", 1.0}});
  check("embedding:x,", {{", ", 1.0}});
  check("(a embedding:x:1.2)", {{"a", 1.2}});
  check("notembedding:x", {{"notembedding:x", 1.0}});
}

BOOST_AUTO_TEST_CASE(embeddings_that_are_known_are_segments) {
  std::vector<std::string> all;
  Work work;
  const auto note = [&](const WeightedText& segment) {
    all.push_back(segment.embedding.count > 0 ? "#" + std::to_string(segment.embedding.first) +
                                                    "+" + std::to_string(segment.embedding.count)
                                              : std::string(segment.text));
    all.back() += segment.weight == 1 ? "" : "*";
  };
  const auto find = [](std::string_view name) {
    return name == "x" ? EmbeddingIds{100, 3} : EmbeddingIds();
  };
  weighted_segments("a embedding:x, b (c embedding:x:1.2) embedding:y d", WeightSyntax::kParsed,
                    work, note, find);
  const std::vector<std::string> expected{"a", "#100+3", ", b", "c*", "#100+3*", "d"};
  BOOST_TEST(all == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(embeddings_left_out_are_named) {
  std::vector<std::string> names;
  Work work;
  named_embeddings("embedding:x, a (embedding:y z:1.2) embedding:x notembedding:w",
                   WeightSyntax::kParsed, work,
                   [&](std::string_view name) { names.emplace_back(name); });
  const std::vector<std::string> expected{"x", "y", "x"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ignored_syntax_keeps_the_text_and_reads_escapes) {
  const Segments segments = segments_of("(a:1.2) \\(b\\)", WeightSyntax::kIgnored);
  const Segments expected{{"(a:1.2) (b)", 1.0}};
  BOOST_CHECK_EQUAL_COLLECTIONS(segments.begin(), segments.end(), expected.begin(), expected.end());
}

BOOST_AUTO_TEST_CASE(very_deep_nesting_ends_as_text) {
  const std::string prompt = std::string(100000, '(') + "a" + std::string(100000, ')');
  const Segments segments = segments_of(prompt);
  BOOST_TEST(segments.size() == 1U);
  BOOST_TEST(segments.at(0).text.starts_with("(("));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
