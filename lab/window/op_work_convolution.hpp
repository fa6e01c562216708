#pragma once

#include <cstddef>
#include <memory>

#include "lab/window/op_work.hpp"

/// The ops of the music model's autoencoder, timed alone: both convolutions with a bias and nothing else
/// fused into them, and snake.
namespace assay::lab {

/// Rows of output; 0 where kernel and padding leave none.
std::size_t conv1d_rows(const OpSizes& sizes);
std::size_t conv_transpose1d_rows(const OpSizes& sizes);

/// Bytes of x, y, the bias and weights of `weight` bytes each.
double conv1d_bytes(const OpSizes& sizes, double weight);
double conv_transpose1d_bytes(const OpSizes& sizes, double weight);
double snake_bytes(const OpSizes& sizes);

std::unique_ptr<Work> make_conv1d_work(const OpSizes& sizes, const ops::Selection& selection,
                                       device::ThreadPool& threads);
std::unique_ptr<Work> make_conv_transpose1d_work(const OpSizes& sizes, const ops::Selection& selection,
                                                 device::ThreadPool& threads);
std::unique_ptr<Work> make_snake_work(const OpSizes& sizes, const ops::Selection& selection,
                                      device::ThreadPool& threads);

}  // namespace assay::lab
