#include "engine/facade/checkpoints.h"

#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/plugin/host.h"

namespace heddle {

std::map<std::string, std::string> builds_of(const Engine::Data& engine,
                                             engine::FileHashes& hashes) {
  std::map<std::string, std::string> builds{
      {"heddle",
       engine::cat(engine::kEngineVersion,
                   engine.options.reference_kernels ? " with the plain loops alone" : "")}};
  for (const auto& plugin : engine.plugins.plugins)
    builds.emplace(engine::cat("the plugin ", plugin->id(), " ", plugin->version()),
                   engine::hex(hashes.of(plugin->path())));
  return builds;
}

CheckpointWriter::CheckpointWriter(const Run::Data& run, Engine::Data& engine) : run_(run) {
  content_.workflow = engine::write_workflow(run.flow->workflow);
  content_.note = run.options.checkpoint_note;
  content_.given = run.given;
  content_.partly = run.options.partly;
  content_.builds = builds_of(engine, engine.file_hashes());
  const Ready& ready = run.ready;
  for (engine::NodeIndex n = 0; n < ready.graph.nodes.size(); ++n)
    content_.made_of[ready.graph.nodes[n].id] = engine::hex(ready.made_of[n]);
  content_.saved.places = engine::places_of(ready.graph, ready.plan, ready.topology);
}

// The first one is where the run begins.
bool CheckpointWriter::is_due() {
  const std::uint64_t every = run_.options.checkpoint_every;
  const std::uint64_t boundary = boundaries_++;
  return every != 0 && boundary != 0 && boundary % every == 0;
}

void CheckpointWriter::write(const engine::SavedRun& saved, engine::Observer& observer) {
  engine::CheckpointContent content = content_;
  content.saved = saved.content();
  content.saved.places = content_.saved.places;
  {
    const auto told = run_.so_far.told.lock();
    content.files = told->files;
    content.ui = told->ui;
  }
  const std::filesystem::path& path = run_.options.checkpoint;
  try {
    engine::write_file(path, engine::checkpoint_text(content), engine::Lasting::yes);
    observer.checkpoint_written(path.string());
  } catch (const engine::Error& error) {
    if (!has_warned_)
      observer.warning(nullptr, engine::cat("no checkpoint was written: ", error.full()));
    has_warned_ = true;
  }
}

RunCheckpoint RunCheckpoint::load(const std::filesystem::path& path) {
  return translate_errors([&] {
    auto data = std::make_shared<Data>();
    data->content = engine::read_checkpoint(path);
    data->workflow = Workflow::parse(data->content.workflow, path.string());
    RunCheckpoint checkpoint;
    checkpoint.data_ = std::move(data);
    return checkpoint;
  });
}

Workflow RunCheckpoint::workflow() const { return data_->workflow; }
std::string RunCheckpoint::note() const { return data_->content.note; }

}  // namespace heddle
