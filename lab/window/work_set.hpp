#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lab/window/op_work.hpp"
#include "lab/window/plan.hpp"

namespace assay::lab {

/// All items of a plan made ready for one of its forms, in one process. Items on one model or shape share it.
class WorkSet {
 public:
  /// Throws what loading models, reading requests and selecting forms throw.
  WorkSet(const WindowPlan& plan, const WindowForm& form);
  ~WorkSet();
  WorkSet(const WorkSet&) = delete;
  WorkSet& operator=(const WorkSet&) = delete;

  Work& item(std::size_t index) { return *items_[index]; }
  std::size_t size() const noexcept { return items_.size(); }
  const std::string& forms() const noexcept { return forms_; }  ///< "op=name op=name …"
  const std::string& model(std::size_t item) const {
    return models_[item];
  }  ///< its identity; empty for none
  std::size_t threads() const noexcept;

 private:
  struct Models;
  device::ThreadPool threads_;
  std::unique_ptr<Models> shared_;
  std::string forms_;
  std::vector<std::string> models_;
  std::vector<std::unique_ptr<Work>> items_;
};

/// Bytes that a form's process holds for a plan's items at the least, told from sizes and file lengths alone.
double least_bytes(const WindowPlan& plan, const WindowForm& form);

}  // namespace assay::lab
