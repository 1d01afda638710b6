// The layout of ABI 0.1, pinned: a change of any number here is a change of the ABI, and has to be meant (64-bit targets).
#include <cstddef>

#include <boost/test/unit_test.hpp>
#include <heddle/abi/device.h>
#include <heddle/abi/model.h>
#include <heddle/abi/ops.h>
#include <heddle/engine.h>

static_assert(HEDDLE_ABI_MAJOR == 0 && HEDDLE_ABI_MINOR == 1);

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset))

SIZE(heddle_host, 80);
AT(heddle_host, size, 0);
AT(heddle_host, service, 32);
AT(heddle_host, fail, 40);
AT(heddle_host, log, 72);
SIZE(heddle_plugin, 56);
AT(heddle_plugin, abi_major, 4);
AT(heddle_plugin, id, 16);
AT(heddle_plugin, init, 32);
AT(heddle_plugin, provide, 48);
SIZE(heddle_list, 16);
AT(heddle_list, items, 8);
SIZE(heddle_registry_service, 24);
AT(heddle_registry_service, plugin, 16);
SIZE(heddle_tensor_info, 144);
AT(heddle_tensor_info, dtype, 4);
AT(heddle_tensor_info, rank, 8);
AT(heddle_tensor_info, layout, 12);
AT(heddle_tensor_info, shape, 16);
AT(heddle_tensor_info, stride, 80);
SIZE(heddle_value_service, 192);
AT(heddle_value_service, kind, 16);
AT(heddle_value_service, get_object, 72);
AT(heddle_value_service, field, 104);
AT(heddle_value_service, make_object, 184);
SIZE(heddle_tensor_service, 80);
AT(heddle_tensor_service, info, 16);
AT(heddle_tensor_service, make, 40);
AT(heddle_tensor_service, view, 56);
AT(heddle_tensor_service, read, 72);
SIZE(heddle_json_service, 16);
AT(heddle_json_service, write, 8);
SIZE(heddle_widget, 80);
AT(heddle_widget, kind, 4);
AT(heddle_widget, number, 8);
AT(heddle_widget, text, 16);
AT(heddle_widget, min, 24);
AT(heddle_widget, choices, 56);
AT(heddle_widget, source, 64);
AT(heddle_widget, extra, 72);
SIZE(heddle_port, 40);
AT(heddle_port, flags, 4);
AT(heddle_port, name, 8);
AT(heddle_port, widget, 32);
SIZE(heddle_slot, 24);
AT(heddle_slot, name, 8);
AT(heddle_slot, use, 16);
SIZE(heddle_node_desc, 128);
AT(heddle_node_desc, version, 4);
AT(heddle_node_desc, type, 8);
AT(heddle_node_desc, flags, 40);
AT(heddle_node_desc, inputs, 56);
AT(heddle_node_desc, weights, 72);
AT(heddle_node_desc, create, 80);
AT(heddle_node_desc, execute, 96);
AT(heddle_node_desc, need, 104);
AT(heddle_node_desc, fingerprint, 112);
AT(heddle_node_desc, infer, 120);
SIZE(heddle_session_open, 40);
AT(heddle_session_open, model, 16);
AT(heddle_session_open, constants, 24);
AT(heddle_session_open, schedule, 32);
SIZE(heddle_preview, 32);
AT(heddle_preview, width, 4);
AT(heddle_preview, step, 12);
AT(heddle_preview, pixels, 24);
SIZE(heddle_exec_service, 208);
AT(heddle_exec_service, share, 184);
AT(heddle_exec_service, wants_preview, 192);
AT(heddle_exec_service, preview, 200);
AT(heddle_exec_service, input, 0);
AT(heddle_exec_service, weight, 16);
AT(heddle_exec_service, want, 24);
AT(heddle_exec_service, cancelled, 56);
AT(heddle_exec_service, progress, 64);
AT(heddle_exec_service, device, 96);
AT(heddle_exec_service, find_op, 120);
AT(heddle_exec_service, op, 128);
AT(heddle_exec_service, open, 136);
AT(heddle_exec_service, step, 144);
AT(heddle_exec_service, close, 152);
AT(heddle_exec_service, defer, 160);
AT(heddle_exec_service, complete, 168);
SIZE(heddle_files_service, 16);
AT(heddle_files_service, output, 8);
SIZE(heddle_infer_service, 56);
AT(heddle_infer_service, cost, 24);
AT(heddle_infer_service, call, 32);
AT(heddle_infer_service, part, 40);
AT(heddle_infer_service, known, 48);
SIZE(heddle_named_info, 160);
AT(heddle_named_info, info, 16);
SIZE(heddle_infer_set, 32);
AT(heddle_infer_set, steps, 24);
SIZE(heddle_infer_call, 40);
AT(heddle_infer_call, model, 16);
AT(heddle_infer_call, schedule, 32);
SIZE(heddle_checkpoint_service, 72);
AT(heddle_checkpoint_service, open, 0);
AT(heddle_checkpoint_service, find, 48);
AT(heddle_checkpoint_service, path, 64);
SIZE(heddle_part, 32);
AT(heddle_part, tensor, 8);
AT(heddle_part, begin, 16);
AT(heddle_part, end, 24);
SIZE(heddle_graph_service, 64);
AT(heddle_graph_service, add, 0);
AT(heddle_graph_service, weight, 16);
AT(heddle_graph_service, link, 24);
AT(heddle_graph_service, setting, 48);
SIZE(heddle_model_desc, 48);
AT(heddle_model_desc, family, 8);
AT(heddle_model_desc, role, 16);
AT(heddle_model_desc, match, 32);
AT(heddle_model_desc, build, 40);
SIZE(heddle_model_service, 48);
AT(heddle_model_service, build, 0);
AT(heddle_model_service, with_settings, 16);
AT(heddle_model_service, input, 40);
SIZE(heddle_device_info, 248);
AT(heddle_device_info, flops_per_second, 232);
SIZE(heddle_link, 24);
AT(heddle_link, latency_seconds, 16);
AT(heddle_device_info, name, 4);
AT(heddle_device_info, location, 132);
AT(heddle_device_info, memory_total, 200);
AT(heddle_device_info, alignment, 216);
AT(heddle_device_info, compute, 224);
AT(heddle_device_info, threads, 228);
SIZE(heddle_view, 152);
AT(heddle_view, data, 144);
SIZE(heddle_op_call, 56);
AT(heddle_op_call, op, 8);
AT(heddle_op_call, in, 24);
AT(heddle_op_call, attrs, 40);
AT(heddle_op_call, attrs_size, 48);
SIZE(heddle_kernel, 56);
AT(heddle_kernel, op, 8);
AT(heddle_kernel, device_kind, 16);
AT(heddle_kernel, name, 24);
AT(heddle_kernel, fits, 32);
AT(heddle_kernel, workspace, 40);
AT(heddle_kernel, launch, 48);
SIZE(heddle_weight_form, 160);
AT(heddle_weight_form, info, 8);
AT(heddle_weight_form, bytes, 152);
SIZE(heddle_device_desc, 240);
AT(heddle_device_desc, link, 224);
AT(heddle_device_desc, kind, 8);
AT(heddle_device_desc, count, 16);
AT(heddle_device_desc, open, 24);
AT(heddle_device_desc, alloc, 48);
AT(heddle_device_desc, alloc_pinned, 64);
AT(heddle_device_desc, stream_make, 80);
AT(heddle_device_desc, event_make, 104);
AT(heddle_device_desc, wait, 136);
AT(heddle_device_desc, done, 144);
AT(heddle_device_desc, can_copy, 152);
AT(heddle_device_desc, copy, 160);
AT(heddle_device_desc, kernels, 168);
AT(heddle_device_desc, weight_form, 176);
AT(heddle_device_desc, make_weight, 184);
AT(heddle_device_desc, record_begin, 192);
AT(heddle_device_desc, recording_free, 216);

// Of the C face: what comes later stands at the end.
SIZE(heddle_engine_options, 232);
AT(heddle_engine_options, budgets, 104);
AT(heddle_engine_options, cache_bytes, 136);
AT(heddle_engine_options, allocator_user, 184);
AT(heddle_engine_options, reserves, 192);
AT(heddle_engine_options, reserve_count, 200);
AT(heddle_engine_options, host_budget, 208);
AT(heddle_engine_options, pinned, 216);
AT(heddle_engine_options, idle_seconds, 224);

// Numbers that travel.
static_assert(HEDDLE_F32 == 1 && HEDDLE_F16 == 2 && HEDDLE_BF16 == 3 && HEDDLE_I32 == 4 && HEDDLE_F8_E5M2 == 9 && HEDDLE_U64 == 15);
static_assert(HEDDLE_KIND_NONE == 0 && HEDDLE_KIND_OBJECT == 10);
static_assert(HEDDLE_INVALID_ARGUMENT == 1 && HEDDLE_INTERNAL == 7);
static_assert(HEDDLE_USE_TABLE == 3 && HEDDLE_WIDGET_FOLDER == 8 && HEDDLE_PORT_LIST == 64 && HEDDLE_NODE_EXPERIMENTAL == 128);

extern "C" int heddle_abi_as_c(void);

BOOST_AUTO_TEST_CASE(c_and_cpp_agree_on_the_size_of_a_node_desc) { BOOST_TEST(heddle_abi_as_c() == int(sizeof(heddle_node_desc))); }
