// What a run tells while it is under way, and before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace heddle {

// How pictures of work under way are made of latents: by a linear map of their channels, or by the
// small decoder of their family (models/vae_approx/taesd_decoder.safetensors and the like) where
// its file is there. They take time.
enum class PreviewMethod { none, linear, taesd };
// By ComfyUI's names: none, auto and latent2rgb (linear), taesd. Nothing: it is another word.
inline std::optional<PreviewMethod> preview_method_named(std::string_view name) {
  if (name == "none") return PreviewMethod::none;
  if (name == "auto" || name == "latent2rgb") return PreviewMethod::linear;
  if (name == "taesd") return PreviewMethod::taesd;
  return std::nullopt;
}

// A picture of a node's work under way. Belongs to its event.
struct Preview {
  unsigned width = 0, height = 0;
  unsigned step = 0, step_count = 0;     // the step that it shows, from 1, of so many
  const std::uint8_t* pixels = nullptr;  // height x width x 3: red, green, blue; row-major
};

// What a run tells. Called on one of the run's threads, one call at a time; keep it short.
struct Event {
  // node_waiting: for its turn to write (StartOptions::writes_after). preview: only with
  // StartOptions::previews. node_shows: all that the node shows, before it is done or cached.
  // node_blocked: a call has met an execution blocker with a message, and was not made.
  // run_waiting: the run has not begun; it waits for `bytes` of the memory `device`, and `text`
  // says who holds them. Told again when that changes. checkpoint_written: `text` is its path.
  // picture_sent: `text` is the PNG file that a node sends instead of saving it; nobody keeps it.
  enum class Kind {
    node_started,
    node_progress,
    node_done,
    node_cached,
    file_written,
    warning,
    node_waiting,
    preview,
    node_shows,
    node_blocked,
    run_waiting,
    checkpoint_written,
    picture_sent
  } kind;
  std::string_view node;  // id; empty for a warning about the run
  std::string_view class_type;
  std::string_view title;
  std::string_view device;  // node_started, preview; run_waiting: or "host"
  double fraction = 0;      // node_progress: 0 to 1
  double seconds = 0;       // node_done
  std::string_view text;  // note, path of the file, message; node_shows: JSON, as in Results::ui()
  std::uint64_t run = 0;  // Run::id()
  const Preview* preview = nullptr;  // preview; until the observer returns
  // Of a node that another asked for: the id that people see, who asked, whence it comes.
  std::string_view display_node, parent_node, real_node;
  std::uint64_t bytes = 0;  // run_waiting
};
using Observer = std::function<void(const Event&)>;

}  // namespace heddle
