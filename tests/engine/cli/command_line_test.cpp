#include "engine/cli/command_line.h"

#include <boost/test/unit_test.hpp>

namespace heddle::cli {
BOOST_AUTO_TEST_SUITE(command_line)

namespace {

using Texts = std::vector<std::string>;

CommandLine parse(const Texts& arguments) {
  ParsedArguments parsed = parse_arguments(arguments);
  BOOST_REQUIRE_MESSAGE(parsed.command_line, parsed.answer.text);
  return std::move(*parsed.command_line);
}

std::string refusal(const Texts& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments);
  BOOST_TEST(!parsed.command_line);
  BOOST_TEST(!parsed.answer.is_help);
  return parsed.answer.text;
}

Texts texts(const CommandLine& line, std::string_view option) {
  Texts all;
  for (const Given& given : line.options.of(option)) all.push_back(given.text);
  return all;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(options_stand_before_and_behind_the_workflow) {
  const CommandLine line = parse({"run", "--json", "a.json", "--threads", "2", "--quiet"});
  BOOST_TEST((line.command == Command::run));
  BOOST_TEST(line.operand == "a.json");
  BOOST_TEST(texts(line, "json") == Texts{"true"});
  BOOST_TEST(texts(line, "threads") == Texts{"2"});
  BOOST_TEST(line.options.of("threads").front().where == "--threads");
}

BOOST_AUTO_TEST_CASE(repeated_options_keep_their_order_and_take_one_value_each) {
  const CommandLine line =
      parse({"run", "--set", "a.seed=1..8", "--set=b.list=[3,5,8]", "a.json", "--set", "c.x=-1"});
  BOOST_TEST(line.operand == "a.json");
  BOOST_TEST(texts(line, "set") == (Texts{"a.seed=1..8", "b.list=[3,5,8]", "c.x=-1"}));
}

BOOST_AUTO_TEST_CASE(values_are_taken_as_they_are) {
  const Texts values{"a.text=", "a.text=x y,z", "a.text={\"b\": [1]}", "a.text='q'", "a.text=#%\n"};
  for (const std::string& value : values)
    BOOST_TEST(texts(parse({"run", "f", "--set", value}), "set") == Texts{value});
}

BOOST_AUTO_TEST_CASE(each_command_is_known) {
  BOOST_TEST((parse({"plan", "f", "--svg", "p.svg", "--min-memory"}).command == Command::plan));
  BOOST_TEST((parse({"nodes"}).command == Command::nodes));
  BOOST_TEST(parse({"nodes", "KSampler", "--json"}).operand == "KSampler");
  BOOST_TEST((parse({"devices", "--json"}).command == Command::devices));
  BOOST_TEST(parse({"devices", "drain", "cuda:1"}).operands == (Texts{"drain", "cuda:1"}),
             boost::test_tools::per_element());
  BOOST_TEST((parse({"plugins"}).command == Command::plugins));
  BOOST_TEST((parse({"tune"}).command == Command::tune));
  BOOST_TEST((parse({"bench", "flux-dev", "--steps", "4"}).command == Command::bench));
  const CommandLine convert =
      parse({"convert", "f.json", "--object-info", "a", "--object-info", "b"});
  BOOST_TEST((convert.command == Command::convert));
  BOOST_TEST(convert.operand == "f.json");
  BOOST_TEST(texts(convert, "object-info") == (Texts{"a", "b"}), boost::test_tools::per_element());
  const CommandLine serve = parse({"serve", "--listen", "127.0.0.1,::1", "--port", "0"});
  BOOST_TEST((serve.command == Command::serve));
  BOOST_TEST(texts(serve, "port") == Texts{"0"}, boost::test_tools::per_element());
  const CommandLine submit = parse({"submit", "a.json", "--wait", "b.json", "--tag", "t"});
  BOOST_TEST((submit.command == Command::submit));
  BOOST_TEST(submit.operands == (Texts{"a.json", "b.json"}), boost::test_tools::per_element());
  BOOST_TEST(has(refusal({"submit"}), "FILE is required"));
  BOOST_TEST((parse({"ps", "--server", "gpu:8188"}).command == Command::ps));
  const CommandLine queue = parse({"queue", "move", "7", "--priority", "-1"});
  BOOST_TEST((queue.command == Command::queue));
  BOOST_TEST(queue.operands == (Texts{"move", "7"}), boost::test_tools::per_element());
  BOOST_TEST(parse({"queue"}).operands.empty());
  BOOST_TEST((parse({"models", "unload", "m"}).command == Command::models));
  BOOST_TEST((parse({"key", "add", "ann", "--admin"}).command == Command::key));
  const CommandLine made = parse({"new", "node", "blur"});
  BOOST_TEST((made.command == Command::make));
  BOOST_TEST(made.operands == (Texts{"node", "blur"}), boost::test_tools::per_element());
  BOOST_TEST((parse({"dev", "blur"}).command == Command::develop));
  BOOST_TEST((parse({"version"}).command == Command::version));
  BOOST_TEST((parse({"--version"}).command == Command::version));
}

// A plan is made here.
BOOST_AUTO_TEST_CASE(plan_takes_every_option_of_run_but_those_of_a_server) {
  for (const OptionSpec& option : all_options()) {
    const bool is_of_server = option.name == "server" || option.name == "api-key";
    if ((option.commands & kRun) == 0 || is_of_server) continue;
    Texts arguments{"plan", "f", "--" + std::string(option.name)};
    if (option.kind != OptionKind::flag) arguments.push_back("x");
    BOOST_TEST(texts(parse(arguments), option.name).size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(wrong_usage_says_what_is_wrong_and_what_was_meant) {
  BOOST_TEST(has(refusal({"rnu", "f"}), "there is no command 'rnu'. Did you mean 'run'?"));
  BOOST_TEST(has(refusal({"run", "f", "--sett", "a.b=1"}),
                 "there is no option '--sett'. Did you mean '--set'?"));
  BOOST_TEST(has(refusal({"run", "f", "--min-memory"}), "--min-memory"));
  BOOST_TEST(has(refusal({"run"}), "FILE"));
  BOOST_TEST(has(refusal({"run", "f", "--set"}), "--set"));
  BOOST_TEST(has(refusal({"run", "f", "g"}), "nothing takes the argument 'g'."));
  BOOST_TEST(has(refusal({"run", "f", "--threads", "1", "--threads", "2"}), "--threads"));
  BOOST_TEST(has(refusal({}), "heddle"));
}

BOOST_AUTO_TEST_CASE(help_names_every_option) {
  const ParsedArguments parsed = parse_arguments({"plan", "--help"});
  BOOST_TEST(parsed.answer.is_help);
  std::string help = parsed.answer.text;
  for (const char* command : {"convert", "serve", "submit", "queue", "key"})
    help += parse_arguments({command, "--help"}).answer.text;
  for (const OptionSpec& option : all_options())
    BOOST_TEST(has(help, "--" + std::string(option.name)));
  BOOST_TEST(parse_arguments({"--help"}).answer.is_help);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
