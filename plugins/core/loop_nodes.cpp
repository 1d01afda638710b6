#include "loop_nodes.h"

#include <algorithm>
#include <heddle/expansion.hpp>
#include <optional>

namespace heddle::loaders {
namespace {

using Link = Expansion::Link;

// An undeclared input; empty: it is not there. What is no list comes as a list of one.
Value extra_of(Context& ctx, const std::string& name) {
  const auto& io = service<heddle_io_service>();
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
    if (io.extra_name(ctx.raw(), i) == name) return Value::share(io.extra(ctx.raw(), i));
  return {};
}

std::int64_t number_of(Context& ctx, const std::string& name, std::int64_t otherwise) {
  const Value given = extra_of(ctx, name);
  if (!given) return otherwise;
  const Value one = given.is(HEDDLE_KIND_LIST) ? given.item(0) : given;
  return one.as<std::int64_t>();
}

struct Step {
  std::int64_t index = 0;
  Value item;
};

std::vector<Step> steps_of(Context& ctx) {
  std::vector<Step> steps;
  const std::string mode = ctx[StartLoop::mode].as<std::string>();
  const auto add = [&](std::int64_t index, Value item = {}) {
    if (steps.size() == 100'000)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the loop has more than 100000 iterations. Give it an end that it reaches.");
    steps.push_back({index, std::move(item)});
  };
  if (mode == "List") {
    const Value list = extra_of(ctx, "mode.list");
    for (std::uint32_t i = 0; i < list.count(); ++i) add(i, list.item(i));
  } else if (mode == "For") {
    const std::int64_t step = number_of(ctx, "mode.step", 1);
    if (step < 1) throw Error(HEDDLE_INVALID_ARGUMENT, "the step of a loop is at least 1");
    const std::int64_t end = number_of(ctx, "mode.max_iteration", 4);
    for (std::int64_t i = number_of(ctx, "mode.start_iteration_index", 0); i < end; i += step) {
      add(i);
      if (end - i <= step) break;  // the sum may not fit
    }
  } else if (mode == "simple") {
    const std::int64_t count = number_of(ctx, "mode.num_iterations", 4);
    for (std::int64_t i = 0; i < count; ++i) add(i);
  } else {
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "'" + mode + "' is no mode of a loop. Choose simple, For or List.");
  }
  return steps;
}

// The copies of a loop's body, and what links them.
class Unrolled {
 public:
  Unrolled(Context& ctx, const Value& body)
      : ctx_(ctx),
        graph_(ctx),
        start_(ctx.node()),
        nodes_(body.field("nodes")),
        end_(body.field("end")) {
    for (std::uint32_t i = 0; i < nodes_.count(); ++i)
      each_link(nodes_.item(i), [&](const std::string&, const Link& link) {
        if (link.node == start_ && link.output < 3) used_[link.output] = true;
      });
    each_link(end_, [&](const std::string&, const Link& link) {
      if (link.node == start_ && link.output < 3) used_[link.output] = true;
    });
  }

  void add(const std::vector<Step>& steps, bool reuses_cache) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      add_iteration(i, steps, reuses_cache);
      add_progress(i, steps.size());
      add_body(i);
    }
  }

  Link result(std::size_t count) {
    auto outputs = graph_.node("heddle.LoopOutputs", "outputs");
    const Value accumulate = end_.field("values").field("accumulate");
    if (accumulate) outputs.set("accumulate", accumulate);
    each_link(end_, [&](const std::string& name, const Link& link) {
      if (name == "accumulate") outputs.link(name, link);
    });
    const Value literal = end_.field("values").field("output_value");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "value." + std::to_string(i);
      if (const auto from = end_link("output_value", i))
        outputs.link(name, *from);
      else if (literal)
        outputs.set(name, literal);
    }
    if (count > 0) follow(outputs, count - 1);
    const auto end = end_.field("id").as<std::string>();
    graph_.node("LoopResult", "result", end).set("close_id", end).link("after", outputs.out());
    return outputs.out();
  }

 private:
  template <class Visit>
  static void each_link(const Value& node, Visit&& visit) {
    const Value links = node.field("links");
    for (std::uint32_t i = 0; i < links.count(); ++i) visit(links.key(i), link_of(links.item(i)));
  }
  std::string id_of(const std::string& name) const { return graph_.prefix() + name; }
  static std::string copy_name(std::size_t i, const std::string& id) {
    return std::to_string(i) + "_" + id;
  }
  std::string moved_id(std::size_t i, const std::string& id) const {
    if (id == start_) return id_of("iteration_" + std::to_string(i));
    return nodes_.has(id.c_str()) ? id_of(copy_name(i, id)) : id;
  }
  Link moved(std::size_t i, const Link& link) const {
    return {moved_id(i, link.node), link.output};
  }

  // Where an input of the end comes from in an iteration.
  std::optional<Link> end_link(const std::string& input, std::size_t i) const {
    std::optional<Link> found;
    each_link(end_, [&](const std::string& name, const Link& link) {
      if (name == input) found = moved(i, link);
    });
    return found;
  }

  // The node waits for all that the iteration has to make.
  void follow(Expansion::Node& node, std::size_t i) {
    int number = 0;
    each_link(end_, [&](const std::string& name, const Link& link) {
      if (name != "accumulate") node.link("after." + std::to_string(number++), moved(i, link));
    });
  }

  void add_iteration(std::size_t i, const std::vector<Step>& steps, bool reuses_cache) {
    auto node = graph_.node("LoopIteration", "iteration_" + std::to_string(i), start_);
    // What nobody reads is not said, so that a longer loop has the same iterations.
    node.set("iteration_index", steps[i].index);
    node.set("is_first", used_[1] && i == 0);
    node.set("is_last", used_[2] && i + 1 == steps.size());
    node.set("reuse_cache", reuses_cache);
    if (steps[i].item) node.set("list_item", steps[i].item);
    if (i == 0) {
      const Value own = find_node(ctx_, start_);
      const char* const name = "initial_iteration_value";
      if (const Value link = own.field("links").field(name))
        node.link("current_iteration_value", link_of(link));
      else if (const Value value = own.field("values").field(name))
        node.set("current_iteration_value", value);
      return;
    }
    if (const auto next = end_link("next_iteration_value", i - 1))
      node.link("current_iteration_value", *next);
    follow(node, i - 1);
  }

  void add_progress(std::size_t i, std::size_t count) {
    graph_.node("LoopProgress", "progress_" + std::to_string(i), start_)
        .set("start_id", start_)
        .set("position", std::int64_t(i + 1))
        .set("total", std::int64_t(count))
        .link("after", {id_of("iteration_" + std::to_string(i)), 0});
  }

  void add_body(std::size_t i) {
    for (std::uint32_t n = 0; n < nodes_.count(); ++n) {
      const std::string id = nodes_.key(n);
      const Value one = nodes_.item(n);
      auto copy = graph_.node(one.field("class_type").as<std::string>(), copy_name(i, id), id);
      const Value values = one.field("values");
      for (std::uint32_t v = 0; v < values.count(); ++v)
        copy.set(values.key(v),
                 values.key(v) == "_loop_body" ? moved_body(i, values.item(v)) : values.item(v));
      each_link(
          one, [&](const std::string& name, const Link& link) { copy.link(name, moved(i, link)); });
    }
  }

  // The body of a loop within this one, which reads nodes of this iteration.
  Value moved_node(std::size_t i, const Value& node) const {
    Record links;
    each_link(node, [&](const std::string& name, const Link& link) {
      links.set(name,
                list_of({value_of(moved_id(i, link.node)), value_of(std::int64_t(link.output))}));
    });
    Record copy(node);
    copy.set("links", links.value());
    const Value values = node.field("values");
    if (values.has("_loop_body"))
      copy.set("values",
               Record(values).set("_loop_body", moved_body(i, values.field("_loop_body"))).value());
    return copy.value();
  }
  Value moved_body(std::size_t i, const Value& body) const {
    const Value nodes = body.field("nodes");
    Record moved;
    for (std::uint32_t n = 0; n < nodes.count(); ++n)
      moved.set(nodes.key(n), moved_node(i, nodes.item(n)));
    return Record()
        .set("nodes", moved.value())
        .set("end", moved_node(i, body.field("end")))
        .value();
  }

  Context& ctx_;
  Expansion graph_;
  const std::string start_;
  const Value nodes_, end_;
  bool used_[3] = {false, false, false};
};

}  // namespace

void StartLoop::execute(Context& ctx) {
  const Value given = extra_of(ctx, "_loop_body");
  if (!given)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the loop has no end. Add an EndLoop behind it.");
  const std::vector<Step> steps = steps_of(ctx);
  Unrolled loop(ctx, given.item(0));
  loop.add(steps, ctx[cache_iterations]);
  const Value nothing = Value::adopt(services.value->make_none());
  Expansion outputs(ctx);
  ctx[index].set(Value(nothing).release());
  ctx[is_first] = false;
  ctx[is_last] = true;
  ctx[item] = nothing;
  outputs.give(current, loop.result(steps.size()));
}

void EndLoop::execute(Context& ctx) {
  if (!ctx.has(value))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the loop has no start. Add a StartLoop before it.");
  ctx[outputs] = ctx[value];
}

void LoopIteration::execute(Context& ctx) {
  const Value nothing = Value::adopt(services.value->make_none());
  ctx[index_out] = ctx[iteration_index];
  ctx[first_out] = ctx[is_first];
  ctx[last_out] = ctx[is_last];
  ctx[item_out] = ctx.has(list_item) ? ctx[list_item] : nothing;
  ctx[current_out] = ctx.has(current) ? ctx[current] : list_of({nothing});
}

void LoopProgress::execute(Context& ctx) {
  const std::string ui = "{\"text\": [\"Iteration " + std::to_string(ctx[position]) + " / " +
                         std::to_string(ctx[total]) + "\"]}";
  service<heddle_report_service>().wrote(ctx.raw(), nullptr, ui.c_str());
  ctx[out] = ctx[position];
}

void LoopOutputs::execute(Context& ctx) {
  const auto& io = service<heddle_io_service>();
  std::vector<Value> lists;
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
    if (std::string_view(io.extra_name(ctx.raw(), i)).starts_with("value."))
      lists.push_back(Value::share(io.extra(ctx.raw(), i)));
  if (!ctx[accumulate] && !lists.empty()) lists.erase(lists.begin(), lists.end() - 1);
  std::vector<Value> items;
  for (const Value& list : lists)
    for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  ctx[out] = list_of(items);
}

}  // namespace heddle::loaders
