#include "assay/assay.hpp"

#include "decision/model.hpp"
#include "decision/request.hpp"
#include "decision/response.hpp"
#include "ops/device_selection.hpp"

namespace assay::api {

struct DecisionModel::Impl {
  std::unique_ptr<decision::DecisionModel> model;
};

DecisionModel::DecisionModel(const std::filesystem::path& run_or_gguf, const DecisionOptions& options) {
  decision::ModelOptions model_options;
  model_options.precision = options.exact ? ops::Precision::fp32 : ops::Precision::bf16;
  model_options.forms = ops::with_device_selection(options.forms, model_options.precision);
  model_options.threads = options.threads;
  model_options.state_cache_bytes = options.state_cache_bytes;
  model_options.progress = options.progress;
  impl_ =
      std::make_unique<Impl>(Impl{decision::DecisionModel::load(run_or_gguf, options.base, model_options)});
}

DecisionModel::~DecisionModel() = default;
DecisionModel::DecisionModel(DecisionModel&&) noexcept = default;
DecisionModel& DecisionModel::operator=(DecisionModel&&) noexcept = default;

std::string DecisionModel::decide(std::string_view request_json) {
  return decision::response_json(impl_->model->decide(decision::parse_request(request_json)));
}

std::string DecisionModel::identity() const {
  return impl_->model->identity();
}

}  // namespace assay::api
