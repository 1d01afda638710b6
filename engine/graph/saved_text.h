// What ComfyUI's interface does to texts before it sends them to a server. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::engine {

// A prompt of a widget with `dynamicPrompts`: comments (// and /* */) go, and of {a|b|c} the first
// one is taken, where the interface takes any: a workflow means the same in every run. \{, \| and
// \} stand for themselves.
std::string plain_prompt(std::string_view text);

// The value of a widget: of a node by its class or title, by the widget's name.
using WidgetText =
    std::function<std::optional<std::string>(std::string_view node, std::string_view widget)>;

// A filename prefix: %NODE.WIDGET% is the widget's value, with "_" for what a file name may not
// have; %date:FORMAT% is what savers fill in (%year%, %month%, ...), where they know all of FORMAT.
// What is not known stays.
std::string replaced_text(std::string_view text, const WidgetText& value_of);

}  // namespace heddle::engine
