// The sockets of saved nodes: files leave out what is not linked and keep the order of the version
// that saved them, so they are laid out again as the class has them. Pure; any thread.
#pragma once

#include "engine/graph/saved_widgets.h"

namespace heddle::engine {

// Of an ordinary node: sockets without a widget, then those of widgets, then what only the file
// has; links are those of the saved sockets of the same names.
std::vector<SavedSlot> sockets_of(const SavedNode& node, const Json& definition,
                                  const SavedWidgets& widgets);

// Of an instance: those of its definition, in the same order.
std::vector<SavedSlot> sockets_of(const SavedNode& node, const SavedGraph& definition);

// Whether a link may go from one type of socket to the other: "*" and "" fit all, and of lists
// ("FLOAT,INT") one has to be in both. Case does not matter.
bool sockets_fit(std::string_view from, std::string_view to);

// The input that a bypassed node passes on in the place of its output `output`, for a reader of
// this type; nothing: none fits.
std::optional<std::size_t> bypass_input(const SavedNode& node, std::string_view output_type,
                                        std::size_t output, std::string_view wanted);

}  // namespace heddle::engine
