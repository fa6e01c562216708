#include "lab/window/work_set.hpp"

#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "decision/model.hpp"
#include "lab/bench_decision.hpp"
#include "lab/synthetic_row.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::lab {
namespace {

constexpr std::uint64_t kSeed = 20;

/// A checkpoint answering one request, the state cache off.
class RequestWork final : public Work {
 public:
  RequestWork(decision::DecisionModel& model, const std::filesystem::path& request)
      : model_(model), request_(decision::parse_request(read_text_file(request), request.string())) {}

  void run() override { model_.decide(request_); }
  WorkCost cost() const override { return {}; }

 private:
  decision::DecisionModel& model_;
  decision::Request request_;
};

/// A pass of a synthetic model.
class PassWork final : public Work {
 public:
  PassWork(backbone::Backbone& model, const WindowItem& item, const WindowForm& form)
      : model_(model), row_(model.config(), item.row_tokens, item.questions) {
    run_.call_tokens = form.call_tokens;
    const OperationCount count =
        count_operations(model.config(), item.row_tokens - kQuestionTokens, kQuestionTokens, item.questions);
    const double others = count.total() - count.matmul;
    const bool bf16 = form.precision == ops::Precision::bf16;
    cost_ = {.fp32_operations = others + (bf16 ? 0 : count.matmul),
             .bf16_operations = bf16 ? count.matmul : 0,
             .bytes = product_bytes(bf16 ? 2 : 4)};
  }

  void run() override { model_.run(row_.segments(), run_); }
  WorkCost cost() const override { return cost_; }

 private:
  /// Of the weights of all products, each of which a pass reads: 2 operations a weight in a pass of one
  /// token.
  double product_bytes(double element) const {
    return element * count_operations(model_.config(), 0, 1, 1).matmul / 2;
  }

  backbone::Backbone& model_;
  SyntheticRow row_;
  backbone::RunOptions run_;
  WorkCost cost_;
};

std::uint64_t folder_bytes(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(path, failed)) return std::filesystem::file_size(path, failed);
  std::uint64_t bytes = 0;
  for (std::filesystem::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".safetensors") bytes += entry->file_size(failed);
  }
  return bytes;
}

double shape_bytes(const formats::ModelConfig& config, double element) {
  const double products = count_operations(config, 0, 1, 1).matmul / 2;
  return element * products + 2 * static_cast<double>(config.vocabulary_size * config.hidden_size);
}

}  // namespace

struct WorkSet::Models {
  struct Synthetic {
    formats::ModelConfig config;
    std::unique_ptr<backbone::Backbone> backbone;
  };
  std::map<std::string, Synthetic> synthetic;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<decision::DecisionModel>> checkpoints;

  backbone::Backbone& shape(const std::string& name, const ops::Selection& selection,
                            device::ThreadPool& threads) {
    Synthetic& model = synthetic[name];
    if (!model.backbone) {
      model.config = shape_config(name);
      model.backbone = std::make_unique<backbone::Backbone>(
          model.config, synthetic_weights(model.config, kSeed), selection, threads);
    }
    return *model.backbone;
  }

  decision::DecisionModel& checkpoint(const WindowItem& item, const WindowForm& form) {
    auto& model = checkpoints[{item.model.string(), item.base.string()}];
    if (!model) {
      decision::ModelOptions options;
      options.precision = form.precision;
      options.forms = form.forms;
      options.threads = form.threads;
      options.call_tokens = form.call_tokens;
      std::optional<std::filesystem::path> base;
      if (!item.base.empty()) base = item.base;
      model = decision::DecisionModel::load(item.model, base, options);
    }
    return *model;
  }
};

WorkSet::WorkSet(const WindowPlan& plan, const WindowForm& form)
    : threads_(form.threads), shared_(std::make_unique<Models>()) {
  const ops::Selection selection = ops::select_forms(form.precision, form.forms);
  forms_ = ops::describe(selection);
  for (const WindowItem& item : plan.items) {
    models_.emplace_back();
    if (!item.op.empty()) {
      items_.push_back(make_op_work(item.op, item.sizes, selection, threads_));
    } else if (!item.shape.empty()) {
      items_.push_back(
          std::make_unique<PassWork>(shared_->shape(item.shape, selection, threads_), item, form));
      models_.back() = "synthetic " + item.shape;
    } else {
      decision::DecisionModel& model = shared_->checkpoint(item, form);
      items_.push_back(std::make_unique<RequestWork>(model, item.request));
      models_.back() = model.identity();
    }
  }
}

WorkSet::~WorkSet() = default;

std::size_t WorkSet::threads() const noexcept {
  return threads_.size();
}

double least_bytes(const WindowPlan& plan, const WindowForm& form) {
  const double element = form.precision == ops::Precision::bf16 ? 2 : 4;
  double bytes = 0;
  std::set<std::string> counted;
  for (const WindowItem& item : plan.items) {
    if (!item.op.empty()) {
      bytes += op_bytes(item.op, item.sizes);
    } else if (!item.shape.empty()) {
      if (counted.insert(item.shape).second) bytes += shape_bytes(shape_config(item.shape), element);
    } else if (counted.insert(item.model.string() + "\n" + item.base.string()).second) {
      bytes += static_cast<double>(folder_bytes(item.model) + folder_bytes(item.base));
    }
  }
  return bytes;
}

}  // namespace assay::lab
