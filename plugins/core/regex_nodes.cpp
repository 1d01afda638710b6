#include "regex_nodes.h"

#include <vector>

#include "regex.h"

namespace heddle::loaders {
namespace {

template <class Node>
RegexOptions options_of(Context& ctx) {
  return {ctx[Node::case_insensitive], ctx[Node::multiline], ctx[Node::dotall]};
}

}  // namespace

// A pattern that cannot be read finds nothing in the first two, as in ComfyUI.
void RegexMatch::execute(Context& ctx) {
  const auto regex = Regex::read(ctx[regex_pattern], options_of<RegexMatch>(ctx));
  if (!regex) ctx.warn("regex_pattern: it cannot be read, and so finds nothing");
  const std::string text = ctx[string];
  ctx[matches] = regex && RegexSearch(*regex, text).next();
}

void RegexExtract::execute(Context& ctx) {
  const auto regex = Regex::read(ctx[regex_pattern], options_of<RegexExtract>(ctx));
  if (!regex) ctx.warn("regex_pattern: it cannot be read, and so finds nothing");
  const std::string text = ctx[string], how = ctx[mode];
  const auto group = std::size_t(ctx[group_index]);
  std::vector<std::string> found;
  if (regex) {
    RegexSearch search(*regex, text);
    const bool has_group = group <= regex->groups();
    while (search.next()) {
      if (how == "First Match") found.emplace_back(*search.group(0));
      // Python's findall() gives the first group where there is one.
      if (how == "All Matches")
        found.emplace_back(search.group(regex->groups() > 0 ? 1 : 0).value_or(""));
      const bool takes_group =
          has_group && (how == "First Group" || (how == "All Groups" && regex->groups() > 0));
      if (const auto part = takes_group ? search.group(group) : std::nullopt)
        found.emplace_back(*part);
      if (how.starts_with("First")) break;
    }
  }
  std::string lines;
  for (std::size_t i = 0; i < found.size(); ++i) lines += (i > 0 ? "\n" : "") + found[i];
  ctx[out] = lines;
}

void RegexReplace::execute(Context& ctx) {
  const std::string pattern = ctx[regex_pattern];
  std::string why;
  const auto regex = Regex::read(pattern, options_of<RegexReplace>(ctx), &why);
  if (!regex)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "regex_pattern: '" + pattern + "' cannot be read: " + why + ". Correct it.");
  ctx[out] = regex_replaced(*regex, ctx[string], ctx[replace], std::size_t(ctx[count]));
}

}  // namespace heddle::loaders
