// Writing the samples of a data set of pictures with hashed-word text features.
#pragma once

#include <data/pictures.hpp>
#include <prowl/io/hashed_text.hpp>

#include <functional>
#include <string>
#include <vector>

namespace prowl::data {

// What the commands that make data sets have in common.
struct Options {
  std::string output;
  int size = 32; // pixels a side
  std::string background = "white";
  std::int64_t tokens = 12; // words of a caption
  std::int64_t width = 64;  // of a word's vector
};

// The exit status where a command throws: 2, bad input, or 1 while it writes, as the other programs have it.
inline int failure_status = 2;

template <class Work>
void writing(Work const& work) {
  failure_status = 1;
  work();
  failure_status = 2;
}

// From then on SIGINT, SIGTERM and SIGHUP make `continue_unless_stopped` throw, so that nothing unfinished is
// left; a second one ends the program.
void catch_stop_signals();
void continue_unless_stopped();

// One sample in twenty: those whose group has fnv1a(group) >> 32 divisible by 20. All samples of a group are
// on one side.
bool in_validation(std::string const& group);

// Throws Error where the data set would replace the file `input`.
void refuse_as_output(Options const& options, std::string const& input);

struct Sample {
  std::string caption;
  std::string group;
};

// Writes the data set, training samples first, each part in the order given, and says what was written.
// `picture(i)` gives the planes of sample i.
void write_samples(Options const& options, std::string const& source, std::vector<Sample> const& samples,
                   std::function<std::vector<std::uint8_t>(std::size_t)> const& picture);

} // namespace prowl::data
