#include <dit/options/progress.hpp>

#include <gtest/gtest.h>

using namespace prowl::dit;

TEST(Progress, durations_use_the_two_largest_units) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(3725), "1 h 02 min");
  EXPECT_EQ(format_duration(90000), "1 d 01 h");
  EXPECT_EQ(format_duration(-1), "?");
}

TEST(Progress, line_has_loss_step_time_images_a_second_optimizer_share_and_time_left) {
  StepReport report{20, 3000, 0.43125, {}, 0.5, 0.125, 64};
  EXPECT_EQ(format_step(report, 1490),
            "step   20/3000  loss 0.4313  0.500 s/step  128 images/s  optimizer 25%  24 min 50 s left");
  report.validation_loss = 0.5;
  EXPECT_NE(format_step(report, 1490).find("loss 0.4313  validation 0.5000  0.500 s/step"),
            std::string::npos);
}

TEST(Progress, writes_plain_lines_where_there_is_no_terminal) {
  std::FILE* file = std::tmpfile();
  Progress progress(file, 2);
  for (std::int64_t step = 1; step <= 5; ++step) {
    StepReport report{step, 5, 1, {}, 1, 0, 1};
    if (step == 3) report.validation_loss = 2;
    progress.report(report);
  }
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  // Every second step, the validated one, the last one.
  EXPECT_EQ(text,
            "step 2/5  loss 1.0000  1.000 s/step  1 images/s  optimizer 0%  3 s left\n"
            "step 3/5  loss 1.0000  validation 2.0000  1.000 s/step  1 images/s  optimizer 0%  2 s left\n"
            "step 4/5  loss 1.0000  1.000 s/step  1 images/s  optimizer 0%  1 s left\n"
            "step 5/5  loss 1.0000  1.000 s/step  1 images/s  optimizer 0%  0 s left\n");
}
