#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "device/thread_pool.hpp"
#include "lab/gate/op_cases.hpp"
#include "lab/gate/subject.hpp"

namespace assay::lab {

/// A form of an op against the op's contract in double precision (see make_op_cases). It has no input arms.
class OpSubject final : public Subject {
 public:
  /// Runs the form that `selection` has for `op`; what it points at must outlive this. Throws
  /// Error(invalid_argument) for an unknown op.
  OpSubject(std::string op, std::uint64_t seed, const ops::Selection& selection, ops::Precision precision);

  nlohmann::ordered_json describe() const override;
  std::size_t cases() const override { return cases_.size(); }
  std::string case_name(std::size_t index) const override { return cases_[index]->name(); }
  Answer expected(std::size_t index) override { return cases_[index]->exact(); }
  Answer run(std::size_t index) override;
  std::optional<Answer> run_changed(std::size_t index, std::string_view arm) override;

 private:
  std::string op_;
  std::uint64_t seed_;
  ops::Selection selection_;
  ops::Precision precision_;
  std::vector<std::unique_ptr<OpCase>> cases_;
  device::ThreadPool threads_;
  device::Arena arena_;
};

}  // namespace assay::lab
