// The keys and words of our own that a workflow may hold, in one place because an editor's schema
// (graphs/workflow.schema.json) lists them too and a test compares the two. Constants; any thread.
#pragma once

#include <array>
#include <string_view>

namespace heddle::engine {

// Of the wrapped form. Others beside them are kept.
inline constexpr std::array<std::string_view, 2> kWorkflowKeys = {"prompt", "devices"};

// Of a node. Others are kept.
inline constexpr std::array<std::string_view, 6> kNodeKeys = {"class_type", "inputs",   "device",
                                                              "prefer",     "parallel", "blocks"};

// What ComfyUI writes into a node or beside the nodes: it must not look like misspelt keys of ours.
inline constexpr std::array<std::string_view, 13> kForeignKeys = {"_meta",
                                                                  "is_changed",
                                                                  "override_display_id",
                                                                  "extra_data",
                                                                  "extra_pnginfo",
                                                                  "client_id",
                                                                  "prompt_id",
                                                                  "number",
                                                                  "front",
                                                                  "partial_execution_targets",
                                                                  "workflow",
                                                                  "list_prompt_ids",
                                                                  "version"};

// Of an entry of "devices", and of one of "blocks". There are no others.
inline constexpr std::array<std::string_view, 1> kDeviceKeys = {"budget"};
inline constexpr std::array<std::string_view, 2> kBlockKeys = {"match", "device"};

// What "parallel" may be. Modes that go together are accepted in any order, and kept in this one.
inline constexpr std::array<std::string_view, 16> kParallelModes = {
    "layers",         "cfg",           "data",        "sequence",        "tensor",
    "none",           "cfg+data",      "cfg+layers",  "cfg+sequence",    "cfg+tensor",
    "data+layers",    "data+sequence", "data+tensor", "cfg+data+layers", "cfg+data+sequence",
    "cfg+data+tensor"};

}  // namespace heddle::engine
