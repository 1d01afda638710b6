// How pictures of a job under way are made. Any thread.
#pragma once

#include "engine/queue/job.h"
#include "heddle/run_event.hpp"

namespace heddle::engine {

// What the job's extra_data asks for ("preview_method"), else `otherwise`.
PreviewMethod preview_method_of(const Job& job, PreviewMethod otherwise);

}  // namespace heddle::engine
