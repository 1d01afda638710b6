// The layout of today, pinned (frozen_test.cpp: that of ABI 1.0): a change of any number here is a
// change of the ABI, and has to be meant (64-bit targets).
#include <cstddef>

#include <heddle/abi/device.h>
#include <heddle/abi/device_ahead.h>
#include <heddle/abi/device_sharing.h>
#include <heddle/abi/joined_model.h>
#include <heddle/abi/least_cost.h>
#include <heddle/abi/model.h>
#include <heddle/abi/ops.h>
#include <heddle/abi/parts.h>
#include <heddle/abi/send.h>
#include <heddle/abi/stages.h>
#include <heddle/abi/weight_change.h>
#include <heddle/engine.h>
#include <boost/test/unit_test.hpp>

static_assert(HEDDLE_ABI_MAJOR == 1 && HEDDLE_ABI_MINOR == 0);

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
AT(heddle_plugin, provide, 32);
AT(heddle_plugin, init, 40);
AT(heddle_plugin, deinit, 48);
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
SIZE(heddle_value_service, 200);
AT(heddle_value_service, kind, 16);
AT(heddle_value_service, get_object, 72);
AT(heddle_value_service, field, 104);
AT(heddle_value_service, make_object, 184);
AT(heddle_value_service, make_blocker, 192);
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
SIZE(heddle_node_desc, 136);
AT(heddle_node_desc, version, 4);
AT(heddle_node_desc, type, 8);
AT(heddle_node_desc, flags, 40);
AT(heddle_node_desc, inputs, 56);
AT(heddle_node_desc, weights, 72);
AT(heddle_node_desc, execute, 80);
AT(heddle_node_desc, create, 88);
AT(heddle_node_desc, destroy, 96);
AT(heddle_node_desc, need, 104);
AT(heddle_node_desc, fingerprint, 112);
AT(heddle_node_desc, infer, 120);
AT(heddle_node_desc, validator, 128);
SIZE(heddle_validator, 24);
AT(heddle_validator, flags, 4);
AT(heddle_validator, inputs, 8);
AT(heddle_validator, validate, 16);
SIZE(heddle_validation_service, 24);
AT(heddle_validation_service, value, 0);
AT(heddle_validation_service, received, 8);
AT(heddle_validation_service, has_file, 16);
SIZE(heddle_session_open, 40);
AT(heddle_session_open, model, 16);
AT(heddle_session_open, constants, 24);
AT(heddle_session_open, schedule, 32);
SIZE(heddle_preview, 32);
AT(heddle_preview, width, 4);
AT(heddle_preview, step, 12);
AT(heddle_preview, pixels, 24);
SIZE(heddle_io_service, 48);
AT(heddle_io_service, input, 0);
AT(heddle_io_service, set_output, 8);
AT(heddle_io_service, want, 16);
AT(heddle_io_service, extra_count, 24);
AT(heddle_io_service, extra_name, 32);
AT(heddle_io_service, extra, 40);
SIZE(heddle_call_service, 40);
AT(heddle_call_service, cancelled, 0);
AT(heddle_call_service, node, 8);
AT(heddle_call_service, device, 16);
AT(heddle_call_service, compute, 24);
AT(heddle_call_service, stream, 32);
SIZE(heddle_report_service, 24);
AT(heddle_report_service, progress, 0);
AT(heddle_report_service, warn, 8);
AT(heddle_report_service, wrote, 16);
SIZE(heddle_preview_service, 16);
AT(heddle_preview_service, wanted, 0);
AT(heddle_preview_service, show, 8);
SIZE(heddle_send_service, 8);
AT(heddle_send_service, picture, 0);
SIZE(heddle_parts_service, 32);
AT(heddle_parts_service, begin, 0);
AT(heddle_parts_service, made, 8);
AT(heddle_parts_service, take_back, 16);
AT(heddle_parts_service, await, 24);
static_assert(HEDDLE_PORT_PARTS == 2048);
SIZE(heddle_least_cost_service, 8);
AT(heddle_least_cost_service, scratch, 0);
SIZE(heddle_stages_service, 32);
AT(heddle_stages_service, begin, 0);
AT(heddle_stages_service, written, 8);
AT(heddle_stages_service, join, 16);
AT(heddle_stages_service, end, 24);
SIZE(heddle_cache_service, 8);
AT(heddle_cache_service, do_not_cache, 0);
SIZE(heddle_ops_service, 16);
AT(heddle_ops_service, find, 0);
AT(heddle_ops_service, enqueue, 8);
SIZE(heddle_block_service, 24);
AT(heddle_block_service, weight, 0);
AT(heddle_block_service, group, 8);
AT(heddle_block_service, shard, 16);
SIZE(heddle_session_service, 24);
AT(heddle_session_service, open, 0);
AT(heddle_session_service, step, 8);
AT(heddle_session_service, close, 16);
SIZE(heddle_expansion_service, 40);
AT(heddle_expansion_service, add_node, 8);
AT(heddle_expansion_service, set_input, 16);
AT(heddle_expansion_service, link_input, 24);
AT(heddle_expansion_service, link_output, 32);
SIZE(heddle_workflow_service, 8);
SIZE(heddle_resume_service, 24);
AT(heddle_resume_service, state, 0);
AT(heddle_resume_service, at_boundary, 8);
AT(heddle_resume_service, save, 16);
SIZE(heddle_completion_service, 16);
AT(heddle_completion_service, defer, 0);
AT(heddle_completion_service, complete, 8);
SIZE(heddle_folders_service, 32);
AT(heddle_folders_service, find, 0);
AT(heddle_folders_service, output, 8);
AT(heddle_folders_service, identify, 16);
AT(heddle_folders_service, places, 24);
SIZE(heddle_files_service, 16);
AT(heddle_files_service, read, 0);
AT(heddle_files_service, create, 8);
SIZE(heddle_infer_service, 48);
AT(heddle_infer_service, value, 0);
AT(heddle_infer_service, part, 8);
AT(heddle_infer_service, in, 16);
AT(heddle_infer_service, out, 24);
AT(heddle_infer_service, known, 32);
AT(heddle_infer_service, shares, 40);
SIZE(heddle_cost_service, 32);
AT(heddle_cost_service, add, 0);
AT(heddle_cost_service, host_scratch, 8);
AT(heddle_cost_service, call, 16);
AT(heddle_cost_service, least_call, 24);
SIZE(heddle_named_info, 160);
AT(heddle_named_info, info, 16);
SIZE(heddle_infer_set, 32);
AT(heddle_infer_set, steps, 24);
SIZE(heddle_infer_call, 40);
AT(heddle_infer_call, model, 16);
AT(heddle_infer_call, schedule, 32);
SIZE(heddle_checkpoint_service, 96);
AT(heddle_checkpoint_service, numbers, 72);
AT(heddle_checkpoint_service, cast, 80);
AT(heddle_checkpoint_service, scale_to_fp8, 88);
AT(heddle_checkpoint_service, open, 0);
AT(heddle_checkpoint_service, find, 48);
AT(heddle_checkpoint_service, path, 64);
SIZE(heddle_part, 40);
AT(heddle_part, tensor, 8);
AT(heddle_part, begin, 16);
AT(heddle_part, end, 24);
AT(heddle_part, frame, 32);
SIZE(heddle_graph_service, 64);
AT(heddle_graph_service, add, 0);
AT(heddle_graph_service, weight, 16);
AT(heddle_graph_service, link, 24);
AT(heddle_graph_service, setting, 48);
SIZE(heddle_model_desc, 48);
AT(heddle_model_desc, family, 8);
AT(heddle_model_desc, role, 16);
AT(heddle_model_desc, match, 24);
AT(heddle_model_desc, build, 32);
AT(heddle_model_desc, doc, 40);
SIZE(heddle_patch, 48);
AT(heddle_patch, up, 8);
AT(heddle_patch, scale, 24);
AT(heddle_patch, rows, 32);
AT(heddle_patch, keep, 40);
SIZE(heddle_saved_tensor, 48);
AT(heddle_saved_tensor, part_count, 4);
AT(heddle_saved_tensor, name, 8);
AT(heddle_saved_tensor, model, 16);
AT(heddle_saved_tensor, parts, 24);
AT(heddle_saved_tensor, shape, 32);
AT(heddle_saved_tensor, rank, 40);
AT(heddle_saved_tensor, dtype, 44);
SIZE(heddle_model_service, 112);
AT(heddle_model_service, build, 0);
AT(heddle_model_service, with_settings, 16);
AT(heddle_model_service, input, 40);
AT(heddle_model_service, checkpoint, 48);
AT(heddle_model_service, with_patches, 56);
AT(heddle_model_service, merge, 64);
AT(heddle_model_service, rebuild, 72);
AT(heddle_model_service, save, 80);
AT(heddle_model_service, prefer, 88);
AT(heddle_model_service, without_blocks, 96);
AT(heddle_model_service, read, 104);
SIZE(heddle_joined_model_service, 8);
SIZE(heddle_weight_change_service, 8);
SIZE(heddle_weight_change, 48);
AT(heddle_weight_change, part, 8);
AT(heddle_weight_change, identity, 16);
AT(heddle_weight_change, apply, 24);
AT(heddle_weight_change, self, 32);
AT(heddle_weight_change, drop, 40);
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
SIZE(heddle_view, 160);
AT(heddle_view, data, 144);
AT(heddle_view, scale, 152);
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
AT(heddle_kernel, launch, 40);
AT(heddle_kernel, workspace, 48);
SIZE(heddle_weight_layout, 160);
AT(heddle_weight_layout, info, 8);
AT(heddle_weight_layout, bytes, 152);
SIZE(heddle_cancel, 32);
AT(heddle_cancel, value, 4);
AT(heddle_cancel, passed_over, 8);
AT(heddle_cancel, retain, 16);
AT(heddle_cancel, release, 24);
SIZE(heddle_device_desc, 176);
AT(heddle_device_desc, kind, 8);
AT(heddle_device_desc, count, 16);
AT(heddle_device_desc, open, 24);
AT(heddle_device_desc, close, 32);
AT(heddle_device_desc, info, 40);
AT(heddle_device_desc, alloc, 48);
AT(heddle_device_desc, free, 56);
AT(heddle_device_desc, stream_make, 64);
AT(heddle_device_desc, stream_free, 72);
AT(heddle_device_desc, event_make, 80);
AT(heddle_device_desc, event_free, 88);
AT(heddle_device_desc, record, 96);
AT(heddle_device_desc, wait_on_stream, 104);
AT(heddle_device_desc, wait, 112);
AT(heddle_device_desc, done, 120);
AT(heddle_device_desc, can_copy, 128);
AT(heddle_device_desc, copy, 136);
AT(heddle_device_desc, weight_layout, 144);
AT(heddle_device_desc, make_weight, 152);
AT(heddle_device_desc, kernels, 160);
AT(heddle_device_desc, extension, 168);
SIZE(heddle_device_pinned, 16);
AT(heddle_device_pinned, free, 8);
SIZE(heddle_device_native, 8);
SIZE(heddle_device_capture, 48);
AT(heddle_device_capture, begin, 0);
AT(heddle_device_capture, end, 8);
AT(heddle_device_capture, replay, 16);
AT(heddle_device_capture, free, 24);
AT(heddle_device_capture, bytes, 32);
AT(heddle_device_capture, keeps_other_streams, 40);
SIZE(heddle_device_links, 8);
SIZE(heddle_device_timing, 8);
SIZE(heddle_device_cancel, 8);
SIZE(heddle_device_identity, 8);
SIZE(heddle_device_identity_info, 680);
AT(heddle_device_identity_info, integrated, 4);
AT(heddle_device_identity_info, uuid, 8);
AT(heddle_device_identity_info, pci_address, 72);
AT(heddle_device_identity_info, architecture, 104);
AT(heddle_device_identity_info, fallbacks, 168);
SIZE(heddle_device_context, 16);
AT(heddle_device_context, release, 8);
SIZE(heddle_device_uses, 8);
AT(heddle_device_uses, last, 0);
SIZE(heddle_device_ahead, 8);
SIZE(heddle_shared_memory, 152);
AT(heddle_shared_memory, descriptor, 4);
AT(heddle_shared_memory, bytes, 8);
AT(heddle_shared_memory, token_bytes, 16);
AT(heddle_shared_memory, token, 24);
SIZE(heddle_device_sharing, 48);
AT(heddle_device_sharing, alloc, 8);
AT(heddle_device_sharing, share, 16);
AT(heddle_device_sharing, map, 24);
AT(heddle_device_sharing, unmap, 32);
AT(heddle_device_sharing, taken, 40);

// Of the C face: what comes later stands at the end.
SIZE(heddle_engine_options, 344);
AT(heddle_engine_options, budgets, 104);
AT(heddle_engine_options, cache_bytes, 136);
AT(heddle_engine_options, allocator_user, 184);
AT(heddle_engine_options, reserves, 192);
AT(heddle_engine_options, reserve_count, 200);
AT(heddle_engine_options, host_budget, 208);
AT(heddle_engine_options, pinned, 216);
AT(heddle_engine_options, idle_seconds, 224);
AT(heddle_engine_options, prompt_limit, 232);
AT(heddle_engine_options, comfyui_dir, 240);
AT(heddle_engine_options, host_floor, 248);
AT(heddle_engine_options, fidelity, 256);
AT(heddle_engine_options, isolate, 264);
AT(heddle_engine_options, isolate_seconds, 280);
AT(heddle_engine_options, isolate_memory, 288);
AT(heddle_engine_options, isolate_sandbox, 296);
AT(heddle_engine_options, python_nodes, 304);
AT(heddle_engine_options, python, 320);
AT(heddle_engine_options, attention_dtype, 328);
AT(heddle_engine_options, linear_dtype, 336);

// Numbers that travel.
static_assert(HEDDLE_F32 == 1 && HEDDLE_F16 == 2 && HEDDLE_BF16 == 3 && HEDDLE_I32 == 4 &&
              HEDDLE_F8_E5M2 == 9 && HEDDLE_U64 == 15);
static_assert(HEDDLE_Q8_0 == 16 && HEDDLE_Q4_0 == 17 && HEDDLE_Q4_1 == 18 && HEDDLE_Q5_0 == 19 &&
              HEDDLE_Q5_1 == 20 && HEDDLE_Q4_K == 21 && HEDDLE_Q6_K == 23 &&
              HEDDLE_I8_SCALED == 24 && HEDDLE_I8_ROTATED == 25 && HEDDLE_NVFP4 == 26 &&
              HEDDLE_I4_ROTATED == 27 && HEDDLE_I4_CODED == 28 && HEDDLE_MXFP8 == 29 &&
              HEDDLE_I4_GROUPED == 30);
static_assert(HEDDLE_KIND_NONE == 0 && HEDDLE_KIND_OBJECT == 10 && HEDDLE_KIND_BLOCKER == 11);
static_assert(HEDDLE_INVALID_ARGUMENT == 1 && HEDDLE_INTERNAL == 7);
static_assert(HEDDLE_USE_TABLE == 3 && HEDDLE_USE_BIAS == 5 && HEDDLE_WIDGET_FOLDER == 8 &&
              HEDDLE_PORT_LIST == 64 && HEDDLE_PORT_LINK == 1024 &&
              HEDDLE_NODE_EXPERIMENTAL == 128 && HEDDLE_NODE_CACHE_ON_DISK == 256 &&
              HEDDLE_NODE_EXPANDS == 512 && HEDDLE_NODE_PASS_EXTRA == 4096 &&
              HEDDLE_NODE_TILES == 8192);

extern "C" int heddle_abi_as_c(void);

BOOST_AUTO_TEST_CASE(c_and_cpp_agree_on_the_size_of_a_node_desc) {
  BOOST_TEST(heddle_abi_as_c() == int(sizeof(heddle_node_desc)));
}
