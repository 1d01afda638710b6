// Which routes are for whom, in one table. What the table does not name is for administrators, so
// that a new route is closed until somebody thinks of it. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/queue/job_queue.h"
#include "engine/serve/router.h"

namespace heddle::engine {

enum class Right {
  anyone,   // who may ask at all; what of others' stands in the answer is left out by the route
  own_job,  // whose job the part "id" of the path names; to others it is not there
  admin,
};

// "GET /queue", as Router::patterns() has it; nothing: the table does not name it.
std::optional<Right> right_of(std::string_view pattern);

// Throws Refused: 403 for what is for administrators, 404 for the job of somebody else.
void authorize(const Call& call, std::string_view pattern, const JobQueue& queue);

// Of what a user asks for that would put their jobs before those of others. Throws Refused (403).
void require_admin(const Caller& caller, std::string_view what);
// Whom a new job belongs to: who asks; administrators may say somebody else. Throws Refused (403).
std::string owner_for(const Caller& caller, const std::string& wanted);
// The jobs of a selection that are theirs.
JobSelection selection_for(const Caller& caller, JobSelection selection);
// Without those of others.
std::vector<Job> visible(const Caller& caller, std::vector<Job> jobs);
std::vector<std::string> visible_ids(const Caller& caller, std::vector<std::string> ids,
                                     const JobQueue& queue);

}  // namespace heddle::engine
