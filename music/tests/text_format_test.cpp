#include "music/text_format.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace assay::music {
namespace {

nlohmann::json recorded_cases() {
  const auto path = std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny.fixture.json";
  return nlohmann::json::parse(read_text_file(path))["cases"];
}

Metas metas_of(const nlohmann::json& record) {
  Metas metas;
  if (record.contains("bpm")) metas.bpm = record["bpm"].get<std::uint32_t>();
  metas.key_scale = record.value("keyscale", "");
  metas.time_signature = record.value("timesignature", "");
  metas.duration = record["audio_duration"];
  if (metas.duration == 0) metas.duration = record.contains("src") ? 96700.0 / 48000 : 35 / 25.0;
  return metas;
}

TEST(TextFormat, GivesTheRecordedTexts) {
  std::size_t checked = 0;
  for (const auto& record : recorded_cases()) {
    Task task = parse_task(record.value("task_type", "text2music"), "task_type");
    if (record.contains("audio_codes")) task = Task::cover;
    EXPECT_EQ(prompt_text(instruction_of(task), record["prompt"].get<std::string>(), metas_of(record)),
              record["text"].get<std::string>());
    EXPECT_EQ(lyric_text(record["vocal_language"].get<std::string>(), record["lyrics"].get<std::string>()),
              record["lyric_text"].get<std::string>());
    ++checked;
  }
  EXPECT_EQ(checked, 6u);
}

TEST(TextFormat, BlankMetasAreNotAvailableAndInstructionsEndInAColon) {
  Metas metas{.bpm = 0, .time_signature = "  ", .key_scale = "\n", .duration = 59.99};
  EXPECT_EQ(prompt_text("Do it", "x", metas),
            "# Instruction\nDo it:\n\n# Caption\nx\n\n# Metas\n- bpm: N/A\n- timesignature: N/A\n"
            "- keyscale: N/A\n- duration: 59 seconds\n<|endoftext|>\n");
}

TEST(TextFormat, TasksHaveTheirWords) {
  for (const Task task : {Task::text_to_music, Task::repaint, Task::cover}) {
    EXPECT_EQ(parse_task(to_string(task), "--task"), task);
  }
  EXPECT_THROW(parse_task("remix", "--task"), Error);
}

}  // namespace
}  // namespace assay::music
