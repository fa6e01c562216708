#include "music/song_sampler.hpp"

#include <string>

#include <fmt/format.h>

namespace assay::music {
namespace {

/// The conditions of a batch, prepared once, and the velocities of one step.
class StepRunner {
 public:
  StepRunner(Dit& dit, const SampleJob& job, std::size_t songs, std::size_t values)
      : dit_(dit), job_(job), main_(dit.prepare(job.condition, job.stop)) {
    velocity_.assign(songs, std::vector<float>(values));
    if (!job.null_condition.empty()) {
      null_ = dit.prepare(job.null_condition, job.stop);
      null_velocity_ = velocity_;
      guidance_.assign(songs, Guidance(dit.config().latent_width, job.guidance));
    }
    if (!job.text_condition.empty()) {
      text_ = dit.prepare(job.text_condition, job.stop);
      text_velocity_ = velocity_;
    }
  }

  /// The velocity of every song at time t, guided and blended.
  const std::vector<std::vector<float>>& run(float t, const std::vector<std::vector<float>>& x) {
    const float way = 1.0f - t;
    const bool guided = null_ && way >= job_.guidance_from && way <= job_.guidance_to;
    std::vector<DitSong> pass;
    add_to(pass, x, main_, velocity_);
    if (guided) add_to(pass, x, *null_, null_velocity_);
    if (text_) add_to(pass, x, *text_, text_velocity_);
    dit_.velocity(t, t, pass, job_.stop);
    for (std::size_t song = 0; song < x.size(); ++song) {
      if (guided) guidance_[song].apply(velocity_[song], null_velocity_[song]);
      if (text_) blend_velocity(velocity_[song], text_velocity_[song], job_.cover_strength);
    }
    return velocity_;
  }

 private:
  void add_to(std::vector<DitSong>& pass, const std::vector<std::vector<float>>& x,
              const PreparedCondition& condition, std::vector<std::vector<float>>& velocity) const {
    for (std::size_t song = 0; song < x.size(); ++song) {
      pass.push_back({job_.context, x[song], &condition, velocity[song]});
    }
  }

  Dit& dit_;
  const SampleJob& job_;
  PreparedCondition main_;
  std::optional<PreparedCondition> null_;
  std::optional<PreparedCondition> text_;
  std::vector<std::vector<float>> velocity_;
  std::vector<std::vector<float>> null_velocity_;
  std::vector<std::vector<float>> text_velocity_;
  std::vector<Guidance> guidance_;
};

}  // namespace

void sample_songs(Dit& dit, const SampleJob& job, std::span<const std::vector<float>> noise,
                  std::vector<std::vector<float>>& x) {
  const std::size_t channels = dit.config().latent_width;
  const std::size_t steps = job.timesteps.size();
  StepRunner runner(dit, job, x.size(), x.front().size());
  for (std::size_t step = 0; step < steps; ++step) {
    const bool last = step + 1 == steps;
    const float t = job.timesteps[step];
    const float t_next = last ? 0.0f : job.timesteps[step + 1];
    const std::vector<std::vector<float>>& velocity = runner.run(t, x);
    for (std::size_t song = 0; song < x.size(); ++song) {
      if (job.tap) job.tap(fmt::format("velocity_{:02}", step), song, velocity[song]);
      euler_step(x[song], velocity[song], channels, t, t_next, last ? std::nullopt : job.dcw);
      if (job.repaint && !last && step < job.repaint->injected_steps) {
        inject_source(x[song], noise[song], job.repaint->source, channels, job.repaint->window, t_next);
      }
    }
    if (job.progress) job.progress(static_cast<double>(step + 1) / static_cast<double>(steps));
  }
  if (!job.repaint || !job.repaint->fade) return;
  for (std::vector<float>& latents : x) {
    blend_into_source(latents, job.repaint->source, channels, job.repaint->window, *job.repaint->fade);
  }
}

}  // namespace assay::music
