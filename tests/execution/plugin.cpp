// The plugin of the execution suite.
#include "expanding_nodes.h"
#include "typed_nodes.h"
#include "validating_nodes.h"
#include "waiting_nodes.h"

using namespace suite;

HEDDLE_PLUGIN("heddle.test.execution", "1.0.0", Number, Add, Pair, Gate, List, Join, Show, Switch,
              FirstOf, Misled, Watch, WhoAmI, Hidden, Truth, Fail, Later, Expand, CountDown, Mixed,
              LookUp, Rogue, Judge, JudgeAll, JudgeTypes, JudgeFile, JudgeFails, Typed, Wants, Sum,
              Grows, Slotted, Count, Peek, Meet)
