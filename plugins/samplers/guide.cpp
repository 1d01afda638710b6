#include "guide.h"

#include <algorithm>
#include <array>

#include "boxes.h"
#include "control_value.h"
#include "model_patches.h"
#include "plugins/blocks/lists.h"
#include "plugins/blocks/unet_config.h"

namespace heddle::samplers {
namespace {

constexpr std::array<const char*, 4> kMixNames = {"cfg", "perp_neg", "dual_cfg", "dual_cfg_nested"};
constexpr std::size_t kPositive = 0, kNegative = 1, kThird = 2, kFirstOwn = 3;

// The model with one more record in a list of its settings.
Value appended(const Value& model, const char* key, const Value& record) {
  const Value settings = model_settings(model);
  return with_settings(
      model, Record(settings).set(key, blocks::appended(settings.field(key), record)).value());
}

Record patch_record(const std::string& name, const PatchNumbers& numbers) {
  Record given;
  for (const auto& [key, value] : numbers.numbers) given.set(key, value_of(value));
  Record record;
  record.set("name", value_of(name)).set("numbers", given.value());
  if (!numbers.operation.empty()) record.set("operation", value_of(numbers.operation));
  if (numbers.reference) record.set("reference", value_of(numbers.reference));
  return record;
}

Value list_of_texts(const std::vector<std::string>& texts) {
  std::vector<Value> items;
  for (const std::string& text : texts) items.push_back(value_of(text));
  return list_of(items);
}

std::vector<std::string> texts_in(const Value& list) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < list.count(); ++i) texts.push_back(list.item(i).as<std::string>());
  return texts;
}

// The paths of the model patches that are not at work at a level.
std::vector<std::string> resting(const std::vector<AppliedPatch>& patches,
                                 const NoiseLevels& levels, double sigma) {
  std::vector<std::string> paths;
  for (const AppliedPatch& patch : patches)
    if (!patch.works_at(levels, sigma)) paths.push_back(patch.path);
  return paths;
}

// A level of each stretch between the ends of the patches' ranges, and these ends.
std::vector<double> levels_between(const std::vector<AppliedPatch>& patches,
                                   const NoiseLevels& levels) {
  std::vector<double> ends{0.0};
  for (const AppliedPatch& patch : patches) {
    const SigmaRange range = patch.range(levels);
    ends.insert(ends.end(), {range.start, range.end});
  }
  std::ranges::sort(ends);
  std::vector<double> all;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    all.push_back(ends[i]);
    all.push_back(i + 1 < ends.size() ? (ends[i] + ends[i + 1]) / 2 : 2 * ends[i] + 1);
  }
  return all;
}

}  // namespace

std::optional<Mix> find_mix(const std::string& name) {
  for (std::size_t i = 0; i < kMixNames.size(); ++i)
    if (name == kMixNames[i]) return Mix(i);
  return std::nullopt;
}

Value guider_record(const Guide& guide) {
  Record record;
  record.set("model", guide.model).set("positive", guide.positive).set("cfg", value_of(guide.cfg));
  if (guide.negative) record.set("negative", guide.negative);
  if (guide.negative_model) record.set("negative_model", guide.negative_model);
  if (guide.mix == Mix::kCfg) return record.value();
  return record.set("mix", value_of(kMixNames[std::size_t(guide.mix)]))
      .set("third", guide.third)
      .set("number", value_of(guide.number))
      .value();
}

Guide guide_of(const Value& guider) {
  Guide guide{.model = guider.field("model"),
              .positive = guider.field("positive"),
              .negative = guider.field("negative"),
              .cfg = guider.get<double>("cfg", 1.0),
              .third = guider.field("third"),
              .number = guider.get<double>("number", 1.0),
              .negative_model = guider.field("negative_model")};
  const std::string name = guider.get<std::string>("mix", "cfg");
  const std::optional<Mix> mix = find_mix(name);
  if (!guide.model || !guide.positive || !mix || (*mix != Mix::kCfg && !guide.third))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the GUIDER has no model, or no conditioning, or mixes by '" + name +
                    "'. Link a BasicGuider or a CFGGuider.");
  guide.mix = *mix;
  return guide;
}

Value with_patch(const Value& model, const std::string& name, const PatchNumbers& numbers,
                 const Value& conditioning) {
  Record record = patch_record(name, numbers);
  if (conditioning) record.set("conditioning", conditioning);
  return appended(model, "prediction_patches", record.value());
}

Value with_skipping_patch(const Value& model, const std::string& name, const PatchNumbers& numbers,
                          const std::vector<std::string>& blocks) {
  return appended(model, "prediction_patches",
                  patch_record(name, numbers).set("without", list_of_texts(blocks)).value());
}

Value without_patches(const Value& model) {
  constexpr std::array<std::string_view, 5> kLeftOut = {
      "prediction_patches", "cfg_overrides", "less_for_negative", "easy_cache", "lazy_cache"};
  const Value settings = model_settings(model);
  Record kept;
  for (std::uint32_t i = 0; i < settings.count(); ++i)
    if (std::ranges::find(kLeftOut, settings.key(i)) == kLeftOut.end())
      kept.set(settings.key(i), settings.item(i));
  return with_settings(model, kept.value());
}

Value with_less_for_negative(const Value& model, const std::vector<std::string>& blocks,
                             double start_percent, double end_percent) {
  const Value record = Record()
                           .set("without", list_of_texts(blocks))
                           .set("start_percent", value_of(start_percent))
                           .set("end_percent", value_of(end_percent))
                           .value();
  return with_settings(model,
                       Record(model_settings(model)).set("less_for_negative", record).value());
}

std::vector<PatchChoice> patches_of(const Value& settings) {
  std::vector<PatchChoice> patches;
  const Value list = settings.field("prediction_patches");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value record = list.item(i), given = record.field("numbers");
    const std::string name = record.get<std::string>("name", "");
    PatchChoice choice{.patch = find_patch(name),
                       .numbers = {},
                       .conditioning = record.field("conditioning"),
                       .without = {}};
    if (choice.patch == nullptr)
      throw Error(HEDDLE_NOT_FOUND, "the model's predictions are to be patched by '" + name +
                                        "', and there is no such patch.");
    for (std::uint32_t k = 0; k < given.count(); ++k)
      choice.numbers.numbers.emplace_back(given.key(k), given.item(k).as<double>());
    choice.numbers.operation = record.get<std::string>("operation", "");
    if (record.has("reference")) choice.numbers.reference = record.field("reference").as<Tensor>();
    choice.without = texts_in(record.field("without"));
    choice.without_field = record.get<std::string>("without_field", "");
    patches.push_back(std::move(choice));
  }
  return patches;
}

Value with_cfg_override(const Value& model, double cfg, double start_percent, double end_percent) {
  return appended(model, "cfg_overrides",
                  Record()
                      .set("cfg", value_of(cfg))
                      .set("start_percent", value_of(start_percent))
                      .set("end_percent", value_of(end_percent))
                      .value());
}

std::vector<CfgOverride> cfg_overrides_of(const Value& settings, const NoiseLevels& levels) {
  std::vector<CfgOverride> overrides;
  const Value list = settings.field("cfg_overrides");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value record = list.item(i);
    overrides.push_back({record.get<double>("cfg", 1.0),
                         levels.percent_to_sigma(record.get<double>("start_percent", 0.0)),
                         levels.percent_to_sigma(record.get<double>("end_percent", 1.0))});
  }
  return overrides;
}

Value with_nag(const Value& model, const NagNumbers& numbers) {
  const Value record = Record()
                           .set("scale", value_of(numbers.scale))
                           .set("alpha", value_of(numbers.alpha))
                           .set("tau", value_of(numbers.tau))
                           .value();
  return with_settings(model, Record(model_settings(model)).set("nag", record).value());
}

std::optional<NagNumbers> nag_of(const Value& settings) {
  const Value record = settings.field("nag");
  if (!record) return std::nullopt;
  return NagNumbers{.scale = record.get<double>("scale", 5.0),
                    .alpha = record.get<double>("alpha", 0.5),
                    .tau = record.get<double>("tau", 1.5)};
}

GuidePlan::GuidePlan(const Guide& guide, const ModelSampling& sampling, bool looks_twice)
    : guide_(with_boxes(guide)), looks_twice_(looks_twice) {
  const Value settings = model_settings(guide_.model);
  patches_ = patches_of(settings);
  overrides_ = cfg_overrides_of(settings, sampling.levels);
  if (model_takes(guide_.model, kNagInput)) nag_ = nag_of(settings);
  add_model(guide_.model, sampling.levels);
  if (guide_.negative_model) {
    const ModelSampling other = model_sampling(guide_.negative_model);
    if (other.prediction != sampling.prediction)
      throw Error(HEDDLE_UNSUPPORTED,
                  "the outputs of the guider's two models mean different things, so they cannot be "
                  "mixed. Link two models of a kind, with the same ModelSampling nodes.");
    if (looks_again() && !blocks::has_unet_patch(guide_.negative_model, kAttended))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "SelfAttentionGuidance asks the guider's model_negative what its middle attends "
                  "to, and that model does not tell. Link a SelfAttentionGuidance before "
                  "model_negative, too.");
    negative_model_ = add_model(guide_.negative_model, other.levels);
  }
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    const PatchChoice& patch = patches_[i];
    if (!patch.has_own()) continue;
    Own own{.patch = i, .model = 0, .range = {}};
    if (!patch.without.empty())
      own.model = add_model(without_blocks(guide_.model, patch.without), sampling.levels);
    if (patch.has_range())
      own.range = range_between(sampling.levels, patch.numbers["start_percent"],
                                patch.numbers["end_percent"]);
    own_.push_back(own);
  }
  if (const Value less = settings.field("less_for_negative")) {
    const AskedModel whole = models_[negative_model_];
    less_for_negative_ =
        Less{add_model(without_blocks(whole.model, texts_in(less.field("without"))), whole.levels),
             range_between(sampling.levels, less.get<double>("start_percent", 0.0),
                           less.get<double>("end_percent", 1.0))};
  }
  for (std::size_t model = 0, count = models_.size(); model < count; ++model) add_rests(model);
}

void GuidePlan::add_rests(std::size_t model) {
  const AskedModel asked = models_[model];
  const std::vector<AppliedPatch> patches = patches_applied_to(asked.model);
  for (const double sigma : levels_between(patches, asked.levels)) {
    const std::vector<std::string> paths = resting(patches, asked.levels, sigma);
    const auto is_known = [&](const Rest& rest) {
      return rest.model == model && rest.paths == paths;
    };
    if (paths.empty() || std::ranges::any_of(rests_, is_known)) continue;
    rests_.push_back({model, paths, add_model(without_blocks(asked.model, paths), asked.levels)});
  }
}

std::size_t GuidePlan::add_model(const Value& model, const NoiseLevels& levels) {
  models_.push_back({model, levels});
  return models_.size() - 1;
}

std::vector<std::size_t> GuidePlan::models_at(double sigma) const {
  std::vector<std::size_t> models(list_count(), 0);
  models[kNegative] = less_for_negative_ && less_for_negative_->range.holds(sigma)
                          ? less_for_negative_->model
                          : negative_model_;
  for (std::size_t i = 0; i < own_.size(); ++i) models[kFirstOwn + i] = own_[i].model;
  for (std::size_t& model : models) {
    if (rests_.empty()) break;
    const AskedModel& asked = models_[model];
    const std::vector<std::string> paths =
        resting(patches_applied_to(asked.model), asked.levels, sigma);
    for (const Rest& rest : rests_)
      if (rest.model == model && rest.paths == paths) {
        model = rest.without;
        break;
      }
  }
  return models;
}

bool GuidePlan::repeats_positive(std::size_t index) const {
  return index >= kFirstOwn && !patches_[own_[index - kFirstOwn].patch].without.empty();
}

std::string GuidePlan::lacks_of_positive(std::size_t index) const {
  return index < kFirstOwn ? "" : patches_[own_[index - kFirstOwn].patch].without_field;
}

bool GuidePlan::is_negative(std::size_t index) const {
  return index == (guide_.is_of_negative ? kPositive : kNegative);
}

Value GuidePlan::list(std::size_t index) const {
  switch (index) {
    case kPositive:
      return guide_.positive;
    case kNegative:
      return with_inherited(guide_.positive, guide_.negative);
    case kThird:
      return with_inherited(guide_.positive, guide_.third);
    default:
      if (const std::string lacks = lacks_of_positive(index); !lacks.empty())
        return blocks::without_field(guide_.positive, lacks);
      return repeats_positive(index)
                 ? guide_.positive
                 : with_inherited(guide_.positive,
                                  patches_[own_[index - kFirstOwn].patch].conditioning);
  }
}

bool GuidePlan::looks_again() const {
  return std::ranges::any_of(patches_,
                             [](const PatchChoice& choice) { return choice.patch->looks_again; });
}

double GuidePlan::cfg_at(double sigma) const {
  double cfg = guide_.cfg;
  if (guide_.mix == Mix::kDual || guide_.mix == Mix::kDualNested) return cfg;
  for (const CfgOverride& override : overrides_)
    if (SigmaRange{override.start_sigma, override.end_sigma}.holds(sigma)) cfg = override.cfg;
  return cfg;
}

std::vector<double> GuidePlan::factors_at(double sigma) const {
  std::vector<double> factors(list_count(), 0.0);
  const Guidance mix = guidance(cfg_at(sigma));
  const Guidance second = guidance(guide_.number);
  switch (guide_.mix) {
    case Mix::kCfg:
      factors[kPositive] = mix.conditioned;
      factors[kNegative] = mix.unconditioned;
      break;
    case Mix::kPerpNeg:
      factors[kPositive] = factors[kNegative] = factors[kThird] = 1.0;
      break;
    case Mix::kDual:
      factors[kPositive] = mix.conditioned;
      factors[kNegative] = second.unconditioned;
      factors[kThird] = second.conditioned - mix.conditioned;
      break;
    case Mix::kDualNested:
      factors[kPositive] = mix.conditioned * second.conditioned;
      factors[kNegative] = second.unconditioned;
      factors[kThird] = mix.unconditioned * second.conditioned;
      break;
  }
  return factors;
}

std::vector<bool> GuidePlan::needed_at(double sigma) const {
  std::vector<bool> needed;
  for (const double factor : factors_at(sigma)) needed.push_back(factor != 0.0);
  if (is_patched()) needed[kPositive] = true;
  if (std::ranges::any_of(patches_,
                          [](const PatchChoice& choice) { return choice.patch->needs_negative; }))
    needed[kNegative] = true;
  if ((looks_twice_ || nag_ || looks_again()) && guide_.negative) needed[kNegative] = true;
  for (std::size_t i = 0; i < own_.size(); ++i)
    needed[kFirstOwn + i] = !own_[i].range || own_[i].range->holds(sigma);
  if (looks_again() && !guide_.negative)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "SelfAttentionGuidance sees the picture by the negative conditioning, and there is "
                "none. Link one, also where cfg is 1.");
  if (needed[kNegative] && !guide_.negative)
    throw Error(HEDDLE_INVALID_ARGUMENT, "cfg is " + std::to_string(cfg_at(sigma)) +
                                             " and there is no negative "
                                             "conditioning. Link one, or set cfg to 1.");
  return needed;
}

}  // namespace heddle::samplers
