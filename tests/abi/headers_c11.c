/* The ABI headers are C11, in any order, and can be included twice. */
#include <heddle/abi/base.h>
#include <heddle/abi/batch_ops.h>
#include <heddle/abi/call.h>
#include <heddle/abi/delta_ops.h>
#include <heddle/abi/device.h>
#include <heddle/abi/device_ahead.h>
#include <heddle/abi/device_sharing.h>
#include <heddle/abi/files.h>
#include <heddle/abi/frame_ops.h>
#include <heddle/abi/infer.h>
#include <heddle/abi/joined_model.h>
#include <heddle/abi/least_cost.h>
#include <heddle/abi/model.h>
#include <heddle/abi/node.h>
#include <heddle/abi/norm_ops.h>
#include <heddle/abi/ops.h>
#include <heddle/abi/parts.h>
#include <heddle/abi/picture_files.h>
#include <heddle/abi/row_ops.h>
#include <heddle/abi/send.h>
#include <heddle/abi/stages.h>
#include <heddle/abi/validate.h>
#include <heddle/abi/value.h>
#include <heddle/abi/weight_change.h>
#include <heddle/dlpack.h>
#include <heddle/engine.h>

int heddle_abi_as_c(void) { return (int)sizeof(heddle_node_desc); }
