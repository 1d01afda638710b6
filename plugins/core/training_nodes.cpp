#include "training_nodes.h"

#include <heddle/expansion.hpp>
#include <map>

namespace heddle::loaders {
namespace {

// A list of what the links give.
Expansion::Link list_of_links(Expansion& graph, const std::vector<Expansion::Link>& links) {
  auto list = graph.node("heddle.LoopOutputs").set("accumulate", true);
  for (std::size_t i = 0; i < links.size(); ++i) list.link("value." + std::to_string(i), links[i]);
  return list.out();
}

}  // namespace

void MakeTrainingDataset::execute(Context& ctx) {
  const Value pictures = ctx[images], words = ctx.has(texts) ? ctx[texts] : Value();
  const std::uint32_t count = pictures.count(), given = words.count();
  if (count == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: the list is empty. Link one with pictures.");
  if (given > 1 && given != count)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "texts: there are " + std::to_string(given) + " for " + std::to_string(count) +
                    " pictures. Link one for each picture, one for all, or none.");
  Expansion graph(ctx);
  const Expansion::Link autoencoder = link_of(ctx[vae]), encoders = link_of(ctx[clip]);
  std::vector<Expansion::Link> encoded, conditionings;
  std::map<std::string, Expansion::Link> of_text;
  for (std::uint32_t i = 0; i < count; ++i) {
    encoded.push_back(
        graph.node("VAEEncode").set("pixels", pictures.item(i)).link("vae", autoencoder).out());
    const std::string text = given == 0 ? "" : words.item(given == 1 ? 0 : i).as<std::string>();
    auto found = of_text.find(text);
    if (found == of_text.end())
      found =
          of_text
              .emplace(text,
                       graph.node("CLIPTextEncode").set("text", text).link("clip", encoders).out())
              .first;
    conditionings.push_back(found->second);
  }
  graph.give(latents, list_of_links(graph, encoded));
  graph.give(conditioning, list_of_links(graph, conditionings));
}

}  // namespace heddle::loaders
