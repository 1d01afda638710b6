// The workflows that overhead_bench measures, as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/text.h"

namespace heddle::bench {

enum class Form { chain, fan };
inline const char* name_of(Form form) { return form == Form::chain ? "chain" : "fan"; }

inline void add_node(std::string& text, int id, const char* type, const std::string& inputs) {
  text += engine::cat(id == 1 ? "{" : ",\n", "\"", id, "\": {\"class_type\": \"", type,
                      "\", \"inputs\": {", inputs, "}}");
}

// `first` and `last` are literals: every output depends on the one, a single sink on the other. Two
// workflows of other firsts have no node in common.
inline std::string workflow_text(Form form, int nodes, std::int64_t first, std::int64_t last) {
  std::string text;
  const auto link = [](int id) { return engine::cat("[\"", id, "\", 0]"); };
  add_node(text, 1, "test.add", engine::cat("\"a\": ", first));
  if (form == Form::chain) {
    for (int id = 2; id < nodes; ++id)
      add_node(text, id, "test.add",
               engine::cat("\"a\": ", link(id - 1),
                           id == nodes - 1 ? engine::cat(", \"b\": ", last) : ""));
    add_node(text, nodes, "test.keep", engine::cat("\"value\": ", link(nodes - 1)));
  } else {
    for (int id = 2; id + 1 < nodes; id += 2) {
      // Each adds another number, or the cache would see one node many times.
      const std::int64_t number = id + 3 < nodes ? id : last;
      add_node(text, id, "test.add", engine::cat("\"a\": ", link(1), ", \"b\": ", number));
      add_node(text, id + 1, "test.keep", engine::cat("\"value\": ", link(id)));
    }
    if (nodes % 2 == 0) add_node(text, nodes, "test.keep", engine::cat("\"value\": ", link(1)));
  }
  return text + "}";
}

// A chain in which each tenth node is one that expands into two, or those two.
inline std::string growing_text(int nodes, bool expands, std::int64_t first) {
  std::string text;
  int id = 0;
  const auto add = [&](const char* type) {
    const std::string input =
        id == 0 ? engine::cat("\"a\": ", first) : engine::cat("\"a\": [\"", id, "\", 0]");
    add_node(text, ++id, type, input);
  };
  for (int n = 1; n < nodes; ++n) {
    if (n % 10 != 0) {
      add("test.add");
    } else if (expands) {
      add("test.add_two");
    } else {
      add("test.add");
      add("test.add");
    }
  }
  const std::string last = engine::cat("\"value\": [\"", id, "\", 0]");
  add_node(text, ++id, "test.keep", last);
  return text + "}";
}

}  // namespace heddle::bench
