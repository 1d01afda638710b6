// The ControlNets of a run: models that see each point before the denoiser does, with the same text
// and a hint, and say what its blocks add to their streams (plugins/denoisers/control.h). They are
// asked for all sets of inputs of an evaluation whose conditionings carry them, in sessions of
// their own. What is added is `strength` times what they make, and those of one conditioning are
// added up.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/infer.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "control_hint.h"
#include "control_models.h"
#include "guide.h"
#include "noise_levels.h"
#include "stretches.h"

namespace heddle::samplers {

// The sets that one ControlNet is asked for.
struct ControlCall {
  Value model;
  struct Member {
    std::size_t set = 0;
    Control control;
  };
  std::vector<Member> members;
};
// A set's entry, and the denoiser that it is for.
struct ControlledEntry {
  Value entry, denoiser;
};
// Those whose ControlNets are at work at this level.
std::vector<ControlCall> control_calls(const std::vector<ControlledEntry>& entries,
                                       const NoiseLevels& levels, double sigma,
                                       ControlModels& models);

// Where the residuals of a model stand, or where those that a denoiser takes do: an input each (the
// setting "control_places", plugins/denoisers/unet_control.h). None where they are those of
// streams.
struct ControlPlace {
  std::string input;
  std::int64_t halvings = 0, channels = 0;
  // (B, h, w, C), for a point (B, C', H, W).
  Shape shape(const Shape& point) const;
  bool operator==(const ControlPlace&) const = default;
};
std::vector<ControlPlace> control_places(const Value& model);

// (B, S, D) of the denoiser's streams for a point (B, C, h, w).
Shape token_shape(const Value& denoiser, const Shape& point);
// What a denoiser is given of one set's calls, by input name, for a point of this shape (B, C, h,
// w). Pure.
std::vector<Infer::Named> residual_shapes(const std::vector<ControlCall>& calls, std::size_t set,
                                          const Value& denoiser, const Shape& point);

// Throws where a conditioning carries ControlNets and the run sees the model in a way that does not
// go together with them.
void refuse_with_controls(bool has_windows, bool has_pairs);

// In a run. One call's thread.
class ControlNets {
 public:
  explicit ControlNets(Context& ctx) : ctx_(ctx), memory_(ctx) {}

  // Of one set.
  struct Asked {
    Value entry, denoiser;
    Shape point;             // (B, C, h, w) that it sees
    Shape grid;              // (h, w) of the whole latent
    std::uint64_t seed = 0;  // of the run
  };
  // A stretch of evaluations, at these levels. Calls autoencoders; throws what check_controls()
  // throws.
  void open(const std::vector<Asked>& sets, const NoiseLevels& levels,
            std::span<const double> sigmas);
  void close();
  // As ModelCalls::take_turns(). False: they do already.
  bool take_turns();
  // The inputs of all sets, with what evaluation `index` of the stretch adds. `others`: gives the
  // memory of the denoiser's sessions back, where these find none.
  void add_residuals(std::uint32_t index, std::vector<Value>& inputs,
                     const std::function<void()>& others);

 private:
  struct Call {
    ControlCall asked;
    std::vector<Value> constants;
    std::unique_ptr<Session> tokens;  // of the denoiser's beginning, or empty
    std::unique_ptr<Session> session;
    void close() {
      session.reset();
      tokens.reset();
    }
  };
  // One ControlNet's part of an input.
  struct Made {
    std::vector<Tensor> parts;  // (B, S, D)
    double strength = 1.0;
    bool cycles = false;  // its residuals follow each other from block to block, again and again
  };
  // A hint is read anew for each conditioning, and encoded once for all that have it.
  struct Encoded {
    Value model, vae;
    std::size_t place = 0;
    Shape cells;
    Hint hint;
    Tensor tensor;
  };
  // What is added at one input of the denoiser.
  struct Sum {
    std::string input;
    std::vector<ops::Term> terms;
  };
  void open_sessions(Call& call);
  void keep_placed(const Control& control, const Value& results, std::vector<Sum>& sums);
  Tensor total(const Sum& sum);
  void add_now(std::uint32_t index, std::vector<Value>& inputs);
  Tensor held(const Tensor& part);
  std::vector<Value> with_tokens(Call& call, std::uint32_t index, std::vector<Value> points);
  std::vector<Value> results_of(Call& call, std::uint32_t index, const std::vector<Value>& inputs);
  Value constants_of(const Asked& asked, const Control& control);
  Tensor hint_for(const Control& control, const Shape& point);
  // stream: which of the streams of blocks.
  Tensor side_by_side(const std::vector<Made>& made, std::size_t stream, const Value& denoiser);

  Context& ctx_;
  std::vector<Asked> sets_;
  std::vector<Call> calls_;
  Value schedule_;
  std::uint32_t steps_ = 0;
  bool one_at_a_time_ = false;
  HostMemory memory_;
  std::vector<Encoded> hints_;
  ControlModels models_;
};

}  // namespace heddle::samplers
