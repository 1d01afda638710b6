#include "engine/serve/batch.h"

#include <algorithm>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// Which input of which node is meant.
struct BatchPlace {
  std::string node, input;
};

[[noreturn]] void refuse_batch(std::string_view what) {
  throw Error(Code::invalid_argument, cat("sweep: ", what));
}

std::vector<std::string_view> keys_of(const Json& object) {
  std::vector<std::string_view> keys;
  if (!object.is_object()) return keys;
  for (const Json::Member& member : object.members()) keys.push_back(member.key);
  return keys;
}

// Ids and names of inputs may have a dot in them: the longest id that is there is meant.
BatchPlace place_of_input(const Json& prompt, const std::string& name) {
  for (std::size_t dot = name.rfind('.'); dot != name.npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    const std::string node = name.substr(0, dot), input = name.substr(dot + 1);
    const Json* found = prompt.find(node);
    if (found == nullptr) continue;
    const Json* inputs = found->find("inputs");
    if (inputs != nullptr && inputs->find(input) != nullptr) return {node, input};
    refuse_batch(cat("node ", quote(node), " has no input ", quote(input), ".",
                     inputs == nullptr ? "" : did_you_mean(input, keys_of(*inputs))));
  }
  if (name.find('.') == name.npos)
    refuse_batch(cat(quote(name), " names no input. Write NODE.INPUT, with the node's id."));
  const std::string node = name.substr(0, name.rfind('.'));
  refuse_batch(cat(quote(name), ": there is no node ", quote(node), " in the prompt.",
                   did_you_mean(node, keys_of(prompt))));
}

// Jobs; the largest number there is where they are even more.
std::uint64_t count_of(const Batch& batch) {
  std::uint64_t count = 1;
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  const auto times = [&](std::uint64_t factor) {
    count = factor != 0 && count > kAll / factor ? kAll : count * factor;
  };
  if (batch.mode == Batch::Mode::crossed)
    for (const BatchInput& input : batch.inputs) times(input.values.size());
  else if (!batch.inputs.empty())
    times(batch.inputs.front().values.size());
  times(batch.repeats);
  return count;
}

void require_values(const Batch& batch) {
  if (batch.repeats == 0) refuse_batch("0 repeats are no jobs. Give 1 or more.");
  for (const BatchInput& input : batch.inputs) {
    const std::size_t values = input.values.size(), wanted = batch.inputs.front().values.size();
    if (values == 0)
      refuse_batch(cat("the list of ", quote(input.name), " is empty. Give it a value."));
    if (batch.mode == Batch::Mode::zipped && values != wanted)
      refuse_batch(cat(quote(input.name), " has ", values, " values and ",
                       quote(batch.inputs.front().name), " has ", wanted,
                       ": lists that are zipped have one length. Cross them, or make them equal."));
    const auto is_same = [&](const BatchInput& other) { return other.name == input.name; };
    if (std::ranges::count_if(batch.inputs, is_same) > 1)
      refuse_batch(cat(quote(input.name), " is given twice. Put its values into one list."));
  }
}

void set_input(Json& prompt, const BatchPlace& place, const Json& value) {
  Json node = prompt.at(place.node), inputs = node.at("inputs");
  inputs.set(place.input, value);
  prompt.set(place.node, std::move(node.set("inputs", std::move(inputs))));
}

// Which value each input has in the set of this number.
std::vector<std::size_t> choice_of(const Batch& batch, std::uint64_t number) {
  std::vector<std::size_t> chosen(batch.inputs.size(), std::size_t(number));
  if (batch.mode == Batch::Mode::zipped) return chosen;
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const std::uint64_t values = batch.inputs[i].values.size();
    chosen[i] = std::size_t(number % values);
    number /= values;
  }
  return chosen;
}

}  // namespace

Batch read_batch(const Json& json) {
  if (!json.is_object()) refuse_batch(cat("expected an object, got ", json.describe(), "."));
  Batch batch;
  for (const Json::Member& member : json.members()) {
    if (member.key == "mode") {
      const std::string mode = member.value.is_string() ? member.value.as_string() : "";
      if (mode != "zipped" && mode != "crossed")
        refuse_batch(cat("\"mode\": expected \"zipped\" or \"crossed\", got ",
                         member.value.describe(), "."));
      batch.mode = mode == "zipped" ? Batch::Mode::zipped : Batch::Mode::crossed;
    } else if (member.key == "repeats") {
      if (!member.value.is_integer() || member.value.as_double() < 0)
        refuse_batch(
            cat("\"repeats\": expected a number of times, got ", member.value.describe(), "."));
      batch.repeats = member.value.as_uint64();
    } else if (member.key == "inputs") {
      if (!member.value.is_object())
        refuse_batch(cat("\"inputs\": expected an object of lists by NODE.INPUT, got ",
                         member.value.describe(), "."));
      for (const Json::Member& input : member.value.members()) {
        if (!input.value.is_array())
          refuse_batch(cat(quote(input.key), ": expected a list of values, got ",
                           input.value.describe(), "."));
        batch.inputs.push_back({input.key, input.value.as_array()});
      }
    } else {
      refuse_batch(cat("there is no key ", quote(member.key), ". There are \"mode\", \"inputs\" ",
                       "and \"repeats\"."));
    }
  }
  return batch;
}

std::vector<Json> expand_batch(const Json& prompt, const Batch& batch, std::uint64_t most) {
  require_values(batch);
  std::vector<BatchPlace> places;
  for (const BatchInput& input : batch.inputs) places.push_back(place_of_input(prompt, input.name));
  const std::uint64_t count = count_of(batch);
  if (count > most)
    refuse_batch(cat("these are ", count, " jobs; ", most,
                     " are allowed at a time. Submit them in several batches."));
  std::vector<Json> prompts;
  for (std::uint64_t set = 0; set < count / batch.repeats; ++set) {
    Json made = prompt;
    const std::vector<std::size_t> chosen = choice_of(batch, set);
    for (std::size_t i = 0; i < places.size(); ++i)
      set_input(made, places[i], batch.inputs[i].values[chosen[i]]);
    for (std::uint64_t times = 1; times < batch.repeats; ++times) prompts.push_back(made);
    prompts.push_back(std::move(made));
  }
  return prompts;
}

}  // namespace heddle::engine
