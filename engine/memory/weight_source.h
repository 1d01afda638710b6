// Where a weight's bytes come from, and the one way to its layout on a device: the same bytes
// whether a weight stays there, passes through or is made again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/files/checkpoint.h"
#include "engine/files/weight_patches.h"
#include "engine/memory/device_state.h"
#include "engine/memory/host_weights.h"

namespace heddle::engine {

// What fills a slot: parts of one checkpoint, one after another along axis 0. A value; the
// checkpoint outlives it.
struct WeightSource {
  struct Part {
    const TensorView* tensor = nullptr;
    std::int64_t begin = 0, end = 0;  // rows
  };
  std::vector<Part> parts;
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  std::vector<Range>
      columns;  // along axis 1 of what is joined, one after another; empty: all of them
  // Of filters over frames, (O, C, T, R, S) or (O, C, T), those of this frame, from 1: (O, C, R, S)
  // or (O, C). Below 0: of (C, O, T) the frame of that number without its sign, transposed: (O, C);
  // of one part, that is not patched. 0: all is taken. Not together with columns.
  std::int64_t frame = 0;
  std::int32_t use = 0;                          // HEDDLE_USE_...
  std::shared_ptr<const WeightPatches> patches;  // of the model; nullptr: none

  // Where each part stands in a matrix of f32 that is zero elsewhere, times its scale: the factors
  // of what is added beside a matrix (weight_factors.h). Empty: one after another.
  struct Place {
    std::int64_t row = 0, column = 0;
    double scale = 1;
    Hash128 file;  // the identity of the part's checkpoint
  };
  std::vector<Place> places;
  std::int64_t placed_rows = 0, placed_width = 0;  // of that matrix

  // Joined shape, joined_dtype() (files/joined_dtype.h): patches change neither. Throws when the
  // parts do not fit together, rows lie outside, or a block of a block format would be cut.
  heddle_tensor_info info() const;
  // The same as a device is told of it: f32 where patches are merged into 16 bits, so that the sum
  // is rounded to what the device computes in and not to what the file is written in.
  heddle_tensor_info device_info() const;
  // What a device is told: HEDDLE_USE_LINEAR_FP8 of the matrices of a scaled fp8 checkpoint, else
  // `use`. What is added beside such a matrix is not fp8.
  std::int32_t device_use() const;
  // Equal for equal bytes: it follows the patches that touch these rows, and no others.
  // `checkpoint` is the identity of the checkpoint that the parts belong to.
  Hash128 key(Hash128 checkpoint) const;
};

// The axis of T in filters over frames, (O, C, T, R, S) and (O, C, T).
inline constexpr std::ptrdiff_t kFrameAxis = 2;
// Elements of a row that neighbour each other: everything below the first `axes` axes.
std::int64_t elements_below(const TensorView& tensor, std::size_t axes);
// Whether patches are merged into any of its rows.
bool has_merged(const WeightSource& source);

// A weight in host memory, ready for a device.
struct HostWeight {
  std::int32_t use = 0;            // WeightSource::device_use()
  std::vector<heddle_view> parts;  // row-major, one after another along axis 0
  // What the parts' bytes lie in: the files, and what was put together for this weight alone. To be
  // held until the work that make_device_weight() enqueued is done.
  std::vector<std::shared_ptr<const void>> keep;
  // Of `keep`, the mapped files that the making reads: to be asked for lost pages (mapped_file.h)
  // when it is done, before anybody uses what was made. Those that host_weight() reads itself it
  // has asked.
  std::vector<std::shared_ptr<const TensorFile>> files;
  // Of `keep`, the host's copy of the file: ends when the stream is past the making, by itself.
  std::shared_ptr<HostLease> lease;
  std::uint64_t made_bytes = 0;  // in `keep`, for this weight alone
};

// Takes the bytes as they lie in the file where it can. Columns and frames are put together and
// patches merged in memory of their own: that takes its time, so no stream's lock is to be held.
// Pure; any thread.
HostWeight host_weight(const WeightSource& source);
// The same for a device that has host memory to take them from (host_weights.h): waits until they
// are there. Throws what that throws, and io for a file that has lost pages meanwhile.
HostWeight host_weight(const WeightSource& source, const DeviceState& state);
// Whether anything of it is put together in memory of its own: host_weight() gives made_bytes.
bool is_made(const WeightSource& source);
// Takes what still lies in a file into memory of its own, and ends the lease: for one that is to be
// kept.
void detach(HostWeight& host);
// The parts of files that it leases.
std::vector<FilePart> file_parts(const WeightSource& source);

// What the device makes of it. Throws what the device throws, with the tensors and their files.
heddle_weight_layout device_layout(const Device& device, const WeightSource& source);

// Enqueues the making of `layout`, which is device_layout() of the stream's device, at `dst` on
// that device (layout.bytes). On any stream of the device, with its lock held. Throws what the
// device throws, as device_layout() does, or what is wrong with a file that it cannot read: it may
// have taken the work all the same, so `host.keep` stays.
void make_device_weight(Stream& stream, const WeightSource& source, const HostWeight& host,
                        const heddle_weight_layout& layout, void* dst);

}  // namespace heddle::engine
